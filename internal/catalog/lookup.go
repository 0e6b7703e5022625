package catalog

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// List returns the objects of one kind that have any of the keys in an index. Each appears once; they are not copied.
func List[T v1alpha1.Object](ctx context.Context, c *Catalog, index string, keys ...string) (found []T, err error) {
	var kind T
	err = ForEachByIndex(ctx, c, kind, func() client.ObjectList { return kind.NewList() }, index, keys, func(o client.Object) { found = append(found, o.(T)) })
	return found, err
}

// All returns all objects of one kind, in no order, without copying them. Its cost grows with their number.
func All[T v1alpha1.Object](ctx context.Context, c *Catalog) ([]T, error) {
	var kind T
	l := kind.NewList()
	if err := c.reader.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing all of %T: %w", kind, err)
	}
	all := make([]T, 0, meta.LenList(l))
	return all, meta.EachListItem(l, func(o runtime.Object) error {
		all = append(all, o.(T))
		return nil
	})
}

// ListInScope returns the objects of one kind that are declared for a project or group itself and belong to it.
func ListInScope[T v1alpha1.Targeted](ctx context.Context, c *Catalog, s Scope) ([]T, error) {
	index := IndexGroup
	if s.Project != nil {
		index = IndexProject
	}
	found, err := List[T](ctx, c, index, s.Keys()...)
	return belonging(found, s.Target()), err
}

// ListForProject is ListInScope for a project that may have no place in the tree: it also finds objects by the path in the status of the
// project.
func ListForProject[T v1alpha1.Targeted](ctx context.Context, c *Catalog, p *v1alpha1.Project) ([]T, error) {
	found, err := List[T](ctx, c, IndexProject, c.ProjectKeys(ctx, p)...)
	return belonging(found, p), err
}

// AllWithID returns the objects of one kind that declare an id, whether or not they are in force.
func AllWithID[T v1alpha1.Identified](ctx context.Context, c *Catalog, id int64) ([]T, error) {
	return List[T](ctx, c, IndexID, strconv.FormatInt(id, 10))
}

// ByID returns the object of one kind that has a REST id, in any namespace, or ErrNotFound.
func ByID[T v1alpha1.Identified](ctx context.Context, c *Catalog, id int64) (found T, err error) {
	all, err := AllWithID[T](ctx, c, id)
	if err != nil {
		return found, err
	}
	if len(all) == 0 {
		return found, ErrNotFound
	}
	return claim.HolderOfID(all, id), nil
}

// ByIDAndUID is ByID for the object with a UID. The error is ErrNotFound if the object is gone, even if another one has its id now.
func ByIDAndUID[T v1alpha1.Identified](ctx context.Context, c *Catalog, id int64, uid types.UID) (T, error) {
	var none T
	found, err := ByID[T](ctx, c, id)
	if err == nil && found.GetUID() != uid {
		err = ErrNotFound
	}
	if err != nil {
		return none, err
	}
	return found, nil
}

// ForEachByIndex calls visit once for each object of a kind that has any of the keys in an index. kind is an object or a list of
// the kind, which can be nil, and newList returns an empty list.
func ForEachByIndex(
	ctx context.Context, c *Catalog, kind runtime.Object, newList func() client.ObjectList, index string, keys []string, visit func(client.Object),
) error {
	var seen map[types.UID]bool
	if len(keys) > 1 {
		seen = map[types.UID]bool{}
	}
	for _, key := range keys {
		found, err := c.withKey(ctx, kind, newList, index, key)
		if err != nil {
			return fmt.Errorf("looking up by %s: %w", index, err) // omits the key, which may be a digest
		}
		for _, one := range found {
			o := one.(client.Object)
			if seen == nil {
				visit(o)
			} else if uid := o.GetUID(); !seen[uid] {
				seen[uid] = true
				visit(o)
			}
		}
	}
	return nil
}

// withKey returns the objects of a kind that have one key in an index.
func (c *Catalog) withKey(ctx context.Context, kind runtime.Object, newList func() client.ObjectList, index, key string) (found []any, err error) {
	if c.indexed != nil {
		if cached, ok := c.indexed.ByIndex(goType(kind), index, key); ok {
			return cached, nil
		}
	}
	l := newList()
	if err := c.reader.List(ctx, l, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	err = meta.EachListItem(l, func(o runtime.Object) error {
		found = append(found, o)
		return nil
	})
	return found, err
}

// Get returns a copy of the object of one kind with a name, or ErrNotFound. The namespace is empty for cluster-scoped kinds.
func Get[T v1alpha1.Object](ctx context.Context, c *Catalog, namespace, name string) (T, error) {
	found, err := get[T](ctx, c, namespace, name)
	if err != nil {
		return found, fmt.Errorf("%s %s: %w", kindOf(found), name, err)
	}
	return found.DeepCopyObject().(T), nil
}

// get is Get without a copy, and for any kind.
func get[T client.Object](ctx context.Context, c *Catalog, namespace, name string) (T, error) {
	var none T
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if c.indexed != nil {
		if found, ok := c.indexed.ByName(goType(none), key); ok {
			if found == nil {
				return none, ErrNotFound
			}
			return found.(T), nil
		}
	}
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if err := c.reader.Get(ctx, key, obj, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return none, ErrNotFound
		}
		return none, fmt.Errorf("reading %s: %w", key, err)
	}
	return obj, nil
}

// goType returns the name by which Indexed and Revisions know the kind of an object or a list, which can be nil.
func goType(o runtime.Object) string { return strings.TrimSuffix(reflect.TypeOf(o).String(), "List") }
