// Package declare writes declared objects for REST callers. A write returns when the cache of this process shows it, so that later reads of
// the process include it.
package declare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/fieldmanager"
	"github.com/forgeplane/forgeplane/internal/frame"
)

// FieldOwner is the field manager of writes.
const FieldOwner = client.FieldOwner(fieldmanager.REST)

// Errors of writes.
var (
	// ErrExists is returned if an object with the name, and so with the natural key, exists.
	ErrExists = errors.New("it already exists")
	// ErrGone is returned if the object was deleted meanwhile.
	ErrGone = errors.New("it no longer exists")
	// ErrChanged is returned if the object was changed after the time on which its removal depends.
	ErrChanged = errors.New("it was changed in the meantime")
	// ErrContended is returned if a write failed repeatedly because of concurrent changes.
	ErrContended = errors.New("other requests are changing it at the same time; try again")
)

// InvalidError has the reason why the API server refuses an object.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// QuotaError is returned if the ResourceQuota of a namespace forbids the creation of an object. It has the message of the API server.
type QuotaError struct{ Reason string }

func (e *QuotaError) Error() string {
	return "The ResourceQuota of the Kubernetes namespace does not allow more: " + e.Reason
}

// Writer writes objects. It is safe for use by several goroutines.
type Writer struct {
	client client.Client
	live   client.Reader
	ids    frame.Allocator
	others Others
	quota  Quota
}

// Others announces writes to other servers.
type Others interface {
	// Wrote returns when the other servers can know that an object was written or deleted.
	Wrote(ctx context.Context, obj client.Object, deleted bool)
}

// Tell makes the writer announce every write to other servers before the write returns. Call it before the first write.
func (w *Writer) Tell(others Others) *Writer {
	w.others = others
	return w
}

// Quota limits the number of objects.
type Quota interface {
	// Admit waits until the object can be created. The caller calls done when the cache shows the object. The error says that there are too
	// many objects.
	Admit(ctx context.Context, obj client.Object) (done func(), err error)
}

// Within returns a writer that creates only objects that a quota admits.
func (w *Writer) Within(q Quota) *Writer {
	bounded := *w
	bounded.quota = q
	return &bounded
}

type replacingKey struct{}

// Replacing returns a context for creating an object that replaces another one. No quota counts it.
func Replacing(ctx context.Context) context.Context {
	return context.WithValue(ctx, replacingKey{}, true)
}

// admit calls the quota, if there is one.
func (w *Writer) admit(ctx context.Context, obj client.Object) (done func(), err error) {
	if w.quota == nil || ctx.Value(replacingKey{}) != nil {
		return func() {}, nil
	}
	return w.quota.Admit(ctx, obj)
}

// NewWriter returns a writer. c reads its own writes, live reads past the cache.
func NewWriter(c client.Client, live client.Reader, ids frame.Allocator) *Writer {
	return &Writer{client: audit.Client(client.WithFieldOwner(c, string(FieldOwner))), live: live, ids: ids}
}

// Create creates an object, with a REST id if its kind has one. An object that is declared for a project or group must name it by name and
// UID, and belongs to it from the start. The error is ErrGone if the parent group of a new project or group is deleted meanwhile.
func (w *Writer) Create(ctx context.Context, obj client.Object) error {
	done, err := w.admit(ctx, obj)
	if err != nil {
		return err
	}
	defer done()
	if err := own(obj); err != nil {
		return err
	}
	if err := w.identify(ctx, obj); err != nil {
		return err
	}
	if err := w.client.Create(ctx, obj); err != nil {
		return explain(err)
	}
	if err := w.keep(ctx, obj); err != nil {
		return err
	}
	return w.shown(ctx, obj)
}

// identify allocates a REST id for an object, if its kind has ids and the object has none.
func (w *Writer) identify(ctx context.Context, obj client.Object) error {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return nil
	}
	spec, status := identified.IDs()
	if *spec = cmp.Or(*spec, *status); *spec != 0 { // a replace can have removed it from the spec
		return nil
	}
	id, err := w.ids.Allocate(ctx, identified)
	*spec = id
	return err
}

// Timeout and interval of the wait until the cache shows an object of another replica, or a Secret.
const (
	ensureTimeout  = 10 * time.Second
	ensureInterval = 5 * time.Millisecond
)

// Ensure creates an object unless it exists, and reads it in either case.
func (w *Writer) Ensure(ctx context.Context, obj client.Object) error {
	err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := w.Create(ctx, obj); !errors.Is(err, ErrExists) {
		return err
	}
	// Another replica was faster, and the cache may not show its object yet.
	key := client.ObjectKeyFromObject(obj)
	err = wait.PollUntilContextTimeout(ctx, ensureInterval, ensureTimeout, true, func(ctx context.Context) (bool, error) {
		err := w.client.Get(ctx, key, obj)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the cache to show %s: %w", key, err)
	}
	return nil
}

// contention is the backoff after a conflict: ten attempts within three seconds.
var contention = wait.Backoff{Steps: 10, Duration: 5 * time.Millisecond, Factor: 2, Jitter: 0.5}

// Update changes an object with mutate, which is called again after a conflict. obj has the result, with a REST id if its kind has one: an
// object that was just declared may not have its id yet.
func (w *Writer) Update(ctx context.Context, obj client.Object, mutate func() error) error {
	// The cache may lag behind the latest write of another client.
	read := client.Reader(w.client)
	err := retry.RetryOnConflict(contention, func() error {
		if err := reread(ctx, read, obj); err != nil {
			return err
		}
		read = w.live
		before := obj.DeepCopyObject().(client.Object)
		if err := mutate(); err != nil {
			return err
		}
		if err := w.identify(ctx, obj); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if data, err := client.MergeFrom(before).Data(obj); err == nil && string(data) == "{}" {
			return nil
		}
		return w.client.Patch(ctx, obj, patch)
	})
	if err != nil {
		return explain(err)
	}
	return w.shown(ctx, obj)
}

// reread reads obj again into an empty object. Decoding a response does not clear fields that the response omits, so values of a refused
// write would remain.
func reread(ctx context.Context, from client.Reader, obj client.Object) error {
	key, as := client.ObjectKeyFromObject(obj), reflect.ValueOf(obj).Elem()
	read := reflect.New(as.Type())
	if err := from.Get(ctx, key, read.Interface().(client.Object)); err != nil {
		return err
	}
	as.Set(read.Elem())
	return nil
}

// Delete removes an object.
func (w *Writer) Delete(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := w.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		return ErrGone // another object has the name
	}
	if err != nil {
		return explain(err)
	}
	return w.unseen(ctx, obj)
}

// discardTimeout limits the removal of a half-finished write.
const discardTimeout = 10 * time.Second

// Discard removes the objects of an unfinished write, even if the client has disconnected. Objects that are gone already are not an error.
func (w *Writer) Discard(ctx context.Context, objects ...client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	var failed error
	for _, obj := range objects {
		if err := w.Delete(ctx, obj); !errors.Is(err, ErrGone) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// shown waits like seen, for an object that still exists. Secrets have two informers, one for the platform and one for tenants, and the
// client cannot tell which one has seen a write.
func (w *Writer) shown(ctx context.Context, obj client.Object) error {
	if _, ok := obj.(*corev1.Secret); ok {
		return w.reached(ctx, obj, client.IgnoreNotFound)
	}
	return w.seen(ctx, obj)
}

// seen waits until the cache shows the write, and announces the write to other servers.
func (w *Writer) seen(ctx context.Context, obj client.Object) error {
	err := w.shownTo(ctx, obj)
	if err == nil {
		w.tell(ctx, obj, false)
	}
	return err
}

// shownTo waits until the cache shows the write. The client delays reads until the cache shows its own writes, but after a conflict, obj can
// be the write of another client.
func (w *Writer) shownTo(ctx context.Context, obj client.Object) error {
	return w.reached(ctx, obj, func(err error) error { return err })
}

// reached waits until the cache has an object as it is in obj, or a newer one. ends returns the errors of a read that end the wait.
func (w *Writer) reached(ctx context.Context, obj client.Object, ends func(error) error) error {
	key, shown := client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object)
	err := wait.PollUntilContextTimeout(ctx, ensureInterval, ensureTimeout, true, func(ctx context.Context) (bool, error) {
		if err := w.client.Get(ctx, key, shown); err != nil {
			return false, ends(err)
		}
		if obj.GetResourceVersion() == "" {
			return true, nil
		}
		order, err := resourceversion.CompareResourceVersion(shown.GetResourceVersion(), obj.GetResourceVersion())
		return order >= 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the cache to show %s: %w", key, err)
	}
	return nil
}

// unseen waits like seen for a deleted object, which can still exist because of finalizers.
func (w *Writer) unseen(ctx context.Context, obj client.Object) error {
	err := client.IgnoreNotFound(w.shownTo(ctx, obj))
	if err == nil {
		w.tell(ctx, obj, true)
	}
	return err
}

func (w *Writer) tell(ctx context.Context, obj client.Object, deleted bool) {
	if w.others != nil {
		w.others.Wrote(ctx, obj, deleted)
	}
}

func explain(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return ErrExists
	case apierrors.IsNotFound(err):
		return ErrGone
	case apierrors.IsConflict(err):
		return ErrContended
	case apierrors.IsInvalid(err):
		return &InvalidError{Reason: err.Error()}
	case apierrors.IsForbidden(err):
		// Only the text of the error identifies a refusal by admission.
		if at := strings.Index(err.Error(), "exceeded quota: "); at >= 0 {
			return &QuotaError{Reason: err.Error()[at:]}
		}
		return err
	default:
		return err
	}
}
