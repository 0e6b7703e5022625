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

// WithID returns the one of the objects that holds a REST id, if there is one. What has no id yet is not known to the REST API,
// and so not found by 0.
func WithID[T claim.Identified](ctx context.Context, c *Catalog, all []T, id int64) (found T, ok bool, err error) {
	for _, o := range all {
		if o.RESTID() != id || id == 0 {
			continue
		}
		if ok, err = c.HoldsID(ctx, o); ok || err != nil {
			return o, ok, err
		}
	}
	return found, false, nil
}

// HoldsID reports whether an object holds its id. One whose status says so is believed; a new one, whose status is still to come,
// is looked up.
func (c *Catalog) HoldsID(ctx context.Context, o claim.Identified) (bool, error) {
	id := o.RESTID()
	if _, status := o.IDs(); id == 0 || *status == id {
		return id != 0, nil
	}
	rivals := listOf(o)
	err := c.reader.List(ctx, rivals, client.MatchingFields{IndexID: strconv.FormatInt(id, 10)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("looking up id %d: %w", id, err)
	}
	var having []claim.Identified
	err = meta.EachListItem(rivals, func(r runtime.Object) error {
		having = append(having, r.(claim.Identified))
		return nil
	})
	return err == nil && claim.HolderOfID(append(having, o), id).GetUID() == o.GetUID(), err
}

// listOf returns an empty list of the kind of an object.
func listOf(o client.Object) client.ObjectList {
	switch o.(type) {
	case *v1alpha1.User:
		return &v1alpha1.UserList{}
	case *v1alpha1.AccessToken:
		return &v1alpha1.AccessTokenList{}
	case *v1alpha1.Group:
		return &v1alpha1.GroupList{}
	case *v1alpha1.Project:
		return &v1alpha1.ProjectList{}
	case *v1alpha1.Membership:
		return &v1alpha1.MembershipList{}
	case *v1alpha1.DeployKey:
		return &v1alpha1.DeployKeyList{}
	case *v1alpha1.ProtectedBranch:
		return &v1alpha1.ProtectedBranchList{}
	case *v1alpha1.TriggerToken:
		return &v1alpha1.TriggerTokenList{}
	case *v1alpha1.Badge:
		return &v1alpha1.BadgeList{}
	case *v1alpha1.RemoteMirror:
		return &v1alpha1.RemoteMirrorList{}
	case *v1alpha1.Label:
		return &v1alpha1.LabelList{}
	case *v1alpha1.JobTokenScope:
		return &v1alpha1.JobTokenScopeList{}
	default:
		panic(fmt.Sprintf("%T is of no kind that claims anything", o)) // of these kinds the indexes are
	}
}
