package declare

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// DeclaredBy returns the field manager that declares an object, such as a GitOps tool. It is empty if only Forgeplane manages the spec of
// the object, or if the object does not exist.
func (w *Writer) DeclaredBy(ctx context.Context, obj client.Object) (manager string, err error) {
	// The cache does not contain managed fields.
	current := obj.DeepCopyObject().(client.Object)
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	manager, _ = fieldmanager.Declarer(current)
	return manager, nil
}

// MadeHere returns the resource version of an object that was created over REST and whose spec only Forgeplane manages, so that Forgeplane
// can change and delete it. It returns "" for every other object, and for an object that does not exist. live reads past the cache, which
// does not contain managed fields.
func MadeHere(ctx context.Context, live client.Reader, obj client.Object) (version string, err error) {
	current := obj.DeepCopyObject().(client.Object)
	if err := live.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if current.GetUID() != obj.GetUID() || !fieldmanager.MadeHere(current) {
		return "", nil
	}
	return current.GetResourceVersion(), nil
}

// DeleteMadeHere is Delete for objects that MadeHere accepts. It reports whether obj is gone, and keeps every other object.
func (w *Writer) DeleteMadeHere(ctx context.Context, obj client.Object) (gone bool, err error) {
	version, err := MadeHere(ctx, w.live, obj)
	if version == "" || err != nil {
		return false, err
	}
	uid := obj.GetUID()
	err = w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return false, nil // it was changed meanwhile
	}
	if client.IgnoreNotFound(err) != nil {
		return false, explain(err)
	}
	return true, w.unseen(ctx, obj)
}
