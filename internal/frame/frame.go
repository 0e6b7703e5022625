// Package frame implements what all controllers of Forgeplane have in common: finalizers, ids, conditions, observedGeneration, a single
// status patch at the end, events, typed errors, and the rule that an unchanged object is not written.
//
// A controller passes ordered steps. A step does one job, changes only the status of the given object, and determines by its error how the
// reconcile ends: Stalled, Waiting, Progressing, Settled, Failed, RequeueAfter, or any other error for a retry.
package frame

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/fair"
)

// Allocator hands out ids for Identified kinds.
type Allocator interface {
	// Allocate returns an id that was never allocated before and that no object of the kind of obj has.
	Allocate(ctx context.Context, obj v1alpha1.Identified) (int64, error)
	// Holder returns the object of the kind of obj that holds id in preference to obj, or nil.
	Holder(ctx context.Context, obj v1alpha1.Identified, id int64) (client.Object, error)
	// Former returns the name of another object that can still be created with id because it had the id before obj, or "".
	Former(ctx context.Context, obj v1alpha1.Identified, id int64) (string, error)
}

// conflictDelay is the delay before retrying a step that changed something at the same time as another writer. Such a conflict is not
// reported as a problem.
const conflictDelay = time.Second

// errSuperseded says that the object differs from the cached one. The cache will receive the new state soon.
var errSuperseded = errors.New("the object has changed or was deleted")

// Step is one job of a reconcile.
type Step[T v1alpha1.Object] func(ctx context.Context, obj T) error

// Base has the dependencies that the frames of all kinds share.
type Base struct {
	// Client writes objects. Its reads may be cached.
	Client client.Client
	// Events records when problems of objects begin and end.
	Events  events.EventRecorder
	Catalog *catalog.Catalog
	// IDs hands out the ids of Identified kinds. It may be nil if there are none.
	IDs Allocator
}

// Frame runs the steps of one kind. It also handles what follows from the interfaces of the kind: Identified objects get an id, and
// Targeted objects are deleted with their target unless a user declares them.
type Frame[T v1alpha1.Object] struct {
	Base
	annotate  func(ctx context.Context, obj T) (bool, error)
	finalizer string
	finalize  Step[T]
	claims    func(ctx context.Context, c *catalog.Catalog, obj T) ([]claim.Claim, error)
	tenant    func(obj T) fair.Key
	content   bool
	goesOn    func(ctx context.Context, obj T) bool
	// replaced has the resource versions that the frame replaces by writing the status of an object that it retries, by UIDs. See news.
	replaced sync.Map
}

// Option configures a Frame.
type Option[T v1alpha1.Object] func(*Frame[T])

// WithIDs replaces the allocator of the Base for the ids of the objects.
func WithIDs[T v1alpha1.Identified](a Allocator) Option[T] {
	return func(f *Frame[T]) { f.IDs = a }
}

// WithAnnotations calls annotate before the steps run, to change the annotations of an object if necessary. annotate reports whether it
// changed them.
func WithAnnotations[T v1alpha1.Object](annotate func(ctx context.Context, obj T) (bool, error)) Option[T] {
	return func(f *Frame[T]) { f.annotate = annotate }
}

// WithClaims removes claims from status.claims that the spec of an object no longer makes, whatever the result of the steps. claims returns
// the claims of the spec. Taking a claim is the job of a step.
func WithClaims[T v1alpha1.Object](claims func(ctx context.Context, c *catalog.Catalog, obj T) ([]claim.Claim, error)) Option[T] {
	return func(f *Frame[T]) { f.claims = claims }
}

// WithTenant sets the tenant whose share the steps for an object use. The default is the namespace of the object, or Forgeplane itself for
// a cluster-scoped object.
func WithTenant[T v1alpha1.Object](tenant func(obj T) fair.Key) Option[T] {
	return func(f *Frame[T]) { f.tenant = tenant }
}

// WithContent reconciles an object on every change of its project or group, such as a changed branch. By default, only changes of the
// declaration, the full path and the readiness trigger a reconcile.
func WithContent[T v1alpha1.Targeted]() Option[T] {
	return func(f *Frame[T]) { f.content = true }
}

// WithUnfinished runs the steps even if the reference of an object was changed to lead to another target, as long as goesOn returns true. They
// see the former target, and the condition says afterwards what was changed.
func WithUnfinished[T v1alpha1.Targeted](goesOn func(ctx context.Context, obj T) bool) Option[T] {
	return func(f *Frame[T]) { f.goesOn = goesOn }
}

// WithFinalizer runs step while an object is being deleted, until it returns nil.
func WithFinalizer[T v1alpha1.Object](name string, step Step[T]) Option[T] {
	return func(f *Frame[T]) { f.finalizer, f.finalize = name, step }
}

// New returns the frame of a kind.
func New[T v1alpha1.Object](b Base, options ...Option[T]) *Frame[T] {
	f := &Frame[T]{Base: b, tenant: func(obj T) fair.Key {
		if obj.GetNamespace() == "" {
			return fair.Key{}
		}
		return fair.Namespace(obj.GetNamespace())
	}}
	if _, ok := f.kind().(v1alpha1.Identified); !ok {
		f.IDs = nil
	}
	for _, o := range options {
		o(f)
	}
	return f
}

// kind returns an empty object of the kind.
func (f *Frame[T]) kind() v1alpha1.Object {
	var typed T
	return reflect.New(reflect.TypeOf(typed).Elem()).Interface().(v1alpha1.Object)
}

// Run reconciles obj. It runs the steps in order until one does not succeed, and then writes the changes of the status in one patch. It
// changes obj.
func (f *Frame[T]) Run(ctx context.Context, obj T, steps ...Step[T]) (reconcile.Result, error) {
	// All tenants share the workers.
	ctx = audit.For(fair.NoWait(fair.With(ctx, f.tenant(obj))), obj)
	if !obj.GetDeletionTimestamp().IsZero() {
		return f.delete(ctx, obj)
	}
	before := obj.DeepCopyObject().(T)
	if err := f.prepare(ctx, obj); errors.Is(err, errSuperseded) {
		return reconcile.Result{}, nil
	} else if err != nil {
		obj = before.DeepCopyObject().(T)
		return f.finish(ctx, before, obj, 0, errors.Join(err, f.release(ctx, obj)))
	}
	before = obj.DeepCopyObject().(T)
	if err := f.release(ctx, obj); err != nil {
		return f.finish(ctx, before, obj, 0, err)
	}
	if f.IDs != nil {
		steps = append([]Step[T]{f.confirmID}, steps...)
	}
	var strayed error
	locate := func(ctx context.Context, obj T) error {
		err := f.locate(ctx, obj)
		if is(err, stalled) && f.goesOn != nil && f.goesOn(ctx, obj) {
			strayed, err = err, nil
		}
		return err
	}
	after, err := f.run(ctx, obj, append([]Step[T]{locate}, steps...))
	if err == nil {
		err = strayed
	}
	return f.finish(ctx, before, obj, after, err)
}

// release removes claims from the status that the spec no longer makes.
func (f *Frame[T]) release(ctx context.Context, obj T) error {
	s := obj.GetCommonStatus()
	if f.claims == nil || len(s.Claims) == 0 {
		return nil
	}
	declared, err := f.claims(ctx, f.Catalog, obj)
	if err != nil {
		return fmt.Errorf("looking up claims: %w", err)
	}
	var kept []string
	for _, k := range declared {
		if k.In(s.Claims) {
			kept = append(kept, k.String())
		}
	}
	if len(kept) < len(s.Claims) {
		s.Claims = kept
	}
	return nil
}

// finish sets the conditions from the result of the steps, writes the changed status, and records events.
func (f *Frame[T]) finish(ctx context.Context, before, obj T, after time.Duration, err error) (reconcile.Result, error) {
	if f.claims != nil {
		defer f.Catalog.Register().End(obj.GetUID())
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if delay := crowded(err); delay > 0 {
		if was := before.GetCommonStatus(); meta.IsStatusConditionTrue(was.Conditions, v1alpha1.ConditionReady) && was.ObservedGeneration == before.GetGeneration() {
			return reconcile.Result{RequeueAfter: delay}, nil // this says nothing about the object
		}
		err = WaitingFor(delay, v1alpha1.ReasonFailed, "%w", err)
	}
	f.conclude(obj, err)
	if patchErr := f.patchStatus(ctx, before, obj, retried(err)); patchErr != nil {
		return unwritten(patchErr)
	}
	f.tell(ctx, before, obj, err)
	return result(after, err)
}

// run calls the steps. It returns the smallest delay that a RequeueAfter requested, and the error that ended the steps.
func (f *Frame[T]) run(ctx context.Context, obj T, steps []Step[T]) (time.Duration, error) {
	var after time.Duration
	for _, step := range steps {
		err := step(ctx, obj)
		var o *outcome
		var s *scheduled
		switch {
		case errors.As(err, &s):
			after, err = sooner(after, s.after), s.error
		case errors.As(err, &o) && o.kind == again:
			after, err = sooner(after, o.after), nil
		}
		if err != nil {
			return after, err
		}
	}
	return after, nil
}

// sooner returns the smaller of two delays. 0 stands for no delay.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

func result(after time.Duration, err error) (reconcile.Result, error) {
	var o *outcome
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: after}, nil
	case errors.As(err, &o) && o.kind != failed:
		// A delay that an earlier step requested applies whatever this step waits for.
		return reconcile.Result{RequeueAfter: sooner(after, o.after)}, nil
	default:
		return reconcile.Result{}, err
	}
}

// name returns the name of an object for messages: its namespace, if it has one, and its name.
func name(obj client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

// recallID restores the id in force that a replace has dropped, but does not write it. Nothing else restores the id while the object is
// being deleted, and the finalizer needs it to find the resources of the object.
func recallID(obj client.Object) {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return
	}
	if spec, status := identified.IDs(); *spec == 0 {
		*spec = *status
	}
}

// delete runs the finalizer step, and removes the finalizer once the step succeeds.
func (f *Frame[T]) delete(ctx context.Context, obj T) (reconcile.Result, error) {
	// The object keeps its claims until it is gone, unless the step releases them.
	before := obj.DeepCopyObject().(T)
	if err := f.release(ctx, obj); err != nil {
		return reconcile.Result{}, err
	}
	if err := f.patchStatus(ctx, before, obj, false); err != nil {
		return unwritten(err)
	}
	if f.finalizer == "" || !controllerutil.ContainsFinalizer(obj, f.finalizer) {
		return reconcile.Result{}, nil
	}
	recallID(obj)
	before = obj.DeepCopyObject().(T)
	err := f.finalize(ctx, obj)
	if err == nil {
		controllerutil.RemoveFinalizer(obj, f.finalizer)
		// The optimistic lock prevents a stale cache from removing the finalizers of others.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err = f.Client.Patch(audit.WithReason(ctx, audit.Event{Action: "finalize"}), obj, patch)
		if apierrors.IsConflict(err) {
			err = nil // the watch will deliver the newer object
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	f.conclude(obj, Failed(v1alpha1.ReasonDeleting, "deleting: %w", err))
	if patchErr := f.patchStatus(ctx, before, obj, retried(err)); patchErr != nil {
		return unwritten(patchErr)
	}
	f.tell(ctx, before, obj, err)
	return result(0, err)
}

// unwritten returns the result of a reconcile that could not write the status.
func unwritten(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil // the event of the other write may have been taken for that of this one
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
