package catalog

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// WithID returns the object that holds a REST id, or nil. An object without an id is not visible in the REST API, so 0 finds nothing.
func WithID[T v1alpha1.Identified](ctx context.Context, c *Catalog, all []T, id int64) (found T, err error) {
	for _, o := range all {
		if o.RESTID() != id || id == 0 {
			continue
		}
		if holds, err := c.HoldsID(ctx, o); err != nil {
			return found, err
		} else if holds {
			return o, nil
		}
	}
	return found, nil
}

// HoldsID reports whether an object holds its id. It trusts a status that says so, and looks up a new object whose status is not written
// yet.
func (c *Catalog) HoldsID(ctx context.Context, o v1alpha1.Identified) (bool, error) {
	id := o.RESTID()
	if _, status := o.IDs(); id == 0 || *status == id {
		return id != 0, nil
	}
	rivals := o.NewList()
	err := c.reader.List(ctx, rivals, client.MatchingFields{IndexID: strconv.FormatInt(id, 10)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("looking up id %d: %w", id, err)
	}
	var having []v1alpha1.Identified
	err = meta.EachListItem(rivals, func(r runtime.Object) error {
		having = append(having, r.(v1alpha1.Identified))
		return nil
	})
	return err == nil && claim.HolderOfID(append(having, o), id).GetUID() == o.GetUID(), err
}
