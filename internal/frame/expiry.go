package frame

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
)

// expiryDelay is the delay before looking again whether the end of an object is stored.
const expiryDelay = time.Second

// Expire deletes an object whose work has ended, when the time that is left to it is over. It waits until shown reports that the object, as it is
// stored, shows the end. A declared object stays: the tool that declares it would create it again, and its work would be done again.
func (f *Frame[T]) Expire(ctx context.Context, obj T, left time.Duration, shown func(stored T) bool) error {
	if targeted, ok := client.Object(obj).(v1alpha1.Targeted); !ok || !fieldmanager.Owned(targeted) {
		return nil
	}
	if left > 0 {
		return RequeueAfter(left)
	}
	stored, err := catalog.Get[T](ctx, f.Catalog, obj.GetNamespace(), obj.GetName())
	if err != nil || !shown(stored) {
		return RequeueAfter(expiryDelay)
	}
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	same := client.Preconditions{UID: &uid, ResourceVersion: &version}
	if err := f.Client.Delete(ctx, obj, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the object, whose time is over: %w", err)
	}
	return nil
}
