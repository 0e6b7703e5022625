package declare

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllers is the field manager of what controllers write: the name of the program.
const controllers = "forgeplane"

// declares reports whether a field manager other than Forgeplane itself says something in the spec.
func declares(m metav1.ManagedFieldsEntry) bool {
	return m.Manager != controllers && m.Manager != string(FieldOwner) && specifies(m)
}

// MadeHere returns the resource version of an object that was created over REST and whose spec only Forgeplane has managed since, so that
// Forgeplane may change and remove it. It returns "" for every other object, and for one that is gone. live reads past the cache, which
// does not have the managed fields.
func MadeHere(ctx context.Context, live client.Reader, obj client.Object) (version string, err error) {
	current := obj.DeepCopyObject().(client.Object)
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	managers := current.GetManagedFields()
	made := slices.ContainsFunc(managers, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == string(FieldOwner) && specifies(m)
	})
	if !made || current.GetUID() != obj.GetUID() || slices.ContainsFunc(managers, declares) {
		return "", nil
	}
	return current.GetResourceVersion(), nil
}

// DeleteMadeHere is Delete for objects that MadeHere accepts, and reports whether obj is gone. Every other object stays.
func (w *Writer) DeleteMadeHere(ctx context.Context, obj client.Object) (gone bool, err error) {
	version, err := MadeHere(ctx, w.live, obj)
	if version == "" || err != nil {
		return false, err
	}
	uid := obj.GetUID()
	err = w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return false, nil // somebody has changed it meanwhile
	}
	if client.IgnoreNotFound(err) != nil {
		return false, explain(err)
	}
	return true, w.unseen(ctx, obj)
}
