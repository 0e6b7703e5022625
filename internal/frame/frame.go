// Package frame is what every controller of Forgeplane has in common: finalizers, ids, conditions, observedGeneration,
// the one status patch at the end, events, typed errors, and the rule that an unchanged object is not written.
//
// A controller gives it ordered steps; a step does one job, changes only the status of the object that it is given,
// and says by its error how the reconcile ends: Stalled, Waiting, Failed, Again, or any other error for a retry.
package frame

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Allocate returns an id that was not allocated before and that no object of the kind of obj has.
	Allocate(ctx context.Context, obj v1alpha1.Identified) (int64, error)
	// Holder returns the object of the kind of obj that holds id before obj does, or nil.
	Holder(ctx context.Context, obj v1alpha1.Identified, id int64) (client.Object, error)
}

// conflictDelay is when a step is tried again that changed something at the same time as somebody else did. That is no
// trouble to tell of.
const conflictDelay = time.Second

// errSuperseded says that the object is not any more what the cache shows. What it has become is on its way.
var errSuperseded = errors.New("the object has changed or is gone")

// Step is one job of a reconcile.
type Step[T v1alpha1.Object] func(ctx context.Context, obj T) error

// Base is what the frames of all kinds share.
type Base struct {
	// Client writes; what it reads may be cached.
	Client client.Client
	// Events is told when objects begin and cease to be in trouble.
	Events  events.EventRecorder
	Catalog *catalog.Catalog
	// IDs hands out the ids of Identified kinds; nil for none.
	IDs Allocator
}

// Frame runs the steps of one kind. What a kind is decides what it does beside: objects that are Identified get an id, and those that are
// Targeted go with what they are declared for.
type Frame[T v1alpha1.Object] struct {
	Base
	owner     func(ctx context.Context, obj T) (client.Object, error)
	annotate  func(ctx context.Context, obj T) (bool, error)
	finalizer string
	finalize  Step[T]
	claims    func(ctx context.Context, c *catalog.Catalog, obj T) ([]claim.Claim, error)
	tenant    func(obj T) fair.Key
	content   bool
}

// Option changes how a Frame works.
type Option[T v1alpha1.Object] func(*Frame[T])

// WithIDs takes the ids of the objects from another allocator than that of the Base.
func WithIDs[T v1alpha1.Identified](a Allocator) Option[T] {
	return func(f *Frame[T]) { f.IDs = a }
}

// WithAnnotations has annotate change the annotations of an object, if it must, before the steps run. It reports whether it
// did.
func WithAnnotations[T v1alpha1.Object](annotate func(ctx context.Context, obj T) (bool, error)) Option[T] {
	return func(f *Frame[T]) { f.annotate = annotate }
}

// WithClaims takes away from status.claims what an object does not claim any more, as claims says by its spec, however the steps
// end. It is a step that takes a claim.
func WithClaims[T v1alpha1.Object](claims func(ctx context.Context, c *catalog.Catalog, obj T) ([]claim.Claim, error)) Option[T] {
	return func(f *Frame[T]) { f.claims = claims }
}

// WithTenant says whom the steps for an object are counted for; without it that is its namespace, and Forgeplane itself for an object
// that has none.
func WithTenant[T v1alpha1.Object](tenant func(obj T) fair.Key) Option[T] {
	return func(f *Frame[T]) { f.tenant = tenant }
}

// WithContent reconciles an object on every change of its project or group, such as that of a branch. Without it, only changes of the
// declaration, the full path and the readiness count.
func WithContent[T v1alpha1.Targeted]() Option[T] {
	return func(f *Frame[T]) { f.content = true }
}

// WithFinalizer runs step when an object is being deleted, until it returns nil.
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
	if _, ok := f.kind().(v1alpha1.Targeted); ok {
		f.owner = func(ctx context.Context, obj T) (client.Object, error) {
			return b.Catalog.Target(ctx, v1alpha1.Object(obj).(v1alpha1.Targeted))
		}
	}
	if _, ok := f.kind().(v1alpha1.Identified); !ok {
		f.IDs = nil
	}
	for _, o := range options {
		o(f)
	}
	return f
}

// kind is an empty object of the kind.
func (f *Frame[T]) kind() v1alpha1.Object {
	var typed T
	return reflect.New(reflect.TypeOf(typed).Elem()).Interface().(v1alpha1.Object)
}

// Run reconciles obj: the steps run in order until one does not succeed, then what changed in the status is written
// in one patch. obj is changed.
func (f *Frame[T]) Run(ctx context.Context, obj T, steps ...Step[T]) (reconcile.Result, error) {
	// The workers are for all tenants.
	ctx = audit.For(fair.Promptly(fair.With(ctx, f.tenant(obj))), obj)
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
	after, err := f.run(ctx, obj, steps)
	return f.finish(ctx, before, obj, after, err)
}

// release takes away from the status what the spec does not show any more.
func (f *Frame[T]) release(ctx context.Context, obj T) error {
	s := obj.GetCommonStatus()
	if f.claims == nil || len(s.Claims) == 0 {
		return nil
	}
	declared, err := f.claims(ctx, f.Catalog, obj)
	if err != nil {
		return fmt.Errorf("looking up what is claimed: %w", err)
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

// finish says in the conditions how the steps ended, writes what changed in the status, and tells what is news.
func (f *Frame[T]) finish(ctx context.Context, before, obj T, after time.Duration, err error) (reconcile.Result, error) {
	if f.claims != nil {
		defer f.Catalog.Register().End(obj.GetUID())
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	if delay := crowded(err); delay > 0 {
		if Ready(before) && before.GetCommonStatus().ObservedGeneration == before.GetGeneration() {
			return reconcile.Result{RequeueAfter: delay}, nil // that says nothing about the object
		}
		err = WaitingFor(delay, v1alpha1.ReasonFailed, "%w", err)
	}
	f.conclude(obj, err)
	if patchErr := f.patchStatus(ctx, before, obj); patchErr != nil {
		return reconcile.Result{}, ignoreConflict(client.IgnoreNotFound(patchErr))
	}
	f.tell(before, obj)
	return result(after, err)
}

// run calls the steps; the smallest delay that an Again asked for comes back with the error that ended them.
func (f *Frame[T]) run(ctx context.Context, obj T, steps []Step[T]) (time.Duration, error) {
	var after time.Duration
	for _, step := range steps {
		err := step(ctx, obj)
		var o *outcome
		if errors.As(err, &o) && o.kind == again {
			if after == 0 || o.after < after {
				after = o.after
			}
			continue
		}
		if err != nil {
			return after, err
		}
	}
	return after, nil
}

func result(after time.Duration, err error) (reconcile.Result, error) {
	var o *outcome
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: after}, nil
	case errors.As(err, &o) && (o.kind == waiting || o.kind == stalled):
		// What a step before has asked for is due whatever this one waits for.
		if after == 0 || o.after > 0 && o.after < after {
			after = o.after
		}
		return reconcile.Result{RequeueAfter: after}, nil
	default:
		return reconcile.Result{}, err
	}
}

// name is how people name an object: the namespace, if it has one, and the name.
func name(obj client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

// recallID gives an object the id in force that a replace has dropped, without writing it: nobody puts it back while the object is
// being deleted, and the finalizer finds by it what is behind the object.
func recallID(obj client.Object) {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return
	}
	if spec, status := identified.IDs(); *spec == 0 {
		*spec = *status
	}
}

// delete runs the finalizer, and lets the object go when it is done.
func (f *Frame[T]) delete(ctx context.Context, obj T) (reconcile.Result, error) {
	// It keeps what it holds until it is gone, unless it gives that up itself.
	before := obj.DeepCopyObject().(T)
	if err := f.release(ctx, obj); err != nil {
		return reconcile.Result{}, err
	}
	if err := f.patchStatus(ctx, before, obj); err != nil {
		return reconcile.Result{}, ignoreConflict(client.IgnoreNotFound(err))
	}
	if f.finalizer == "" || !controllerutil.ContainsFinalizer(obj, f.finalizer) {
		return reconcile.Result{}, nil
	}
	recallID(obj)
	before = obj.DeepCopyObject().(T)
	err := f.finalize(ctx, obj)
	if err == nil {
		controllerutil.RemoveFinalizer(obj, f.finalizer)
		// The lock keeps a stale cache from taking away the finalizers of others.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		told := audit.Because(ctx, audit.Event{Action: "finalize"})
		return reconcile.Result{}, ignoreConflict(client.IgnoreNotFound(f.Client.Patch(told, obj, patch)))
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	}
	f.conclude(obj, Failed(v1alpha1.ReasonDeleting, "deleting: %w", err))
	if patchErr := f.patchStatus(ctx, before, obj); patchErr != nil {
		return reconcile.Result{}, ignoreConflict(client.IgnoreNotFound(patchErr))
	}
	f.tell(before, obj)
	return result(0, err)
}

// conclude sets the conditions from how the steps ended.
func (f *Frame[T]) conclude(obj T, err error) {
	status := obj.GetCommonStatus()
	status.ObservedGeneration = obj.GetGeneration()
	if err == nil {
		f.set(obj, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionReconciling)
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionStalled)
		return
	}
	reason, message := v1alpha1.ReasonFailed, Sanitise(err.Error())
	present, absent := v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	var o *outcome
	if errors.As(err, &o) {
		reason = o.reason
		if o.kind == stalled {
			present, absent = absent, present
		}
	}
	f.set(obj, v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
	f.set(obj, present, metav1.ConditionTrue, reason, message)
	meta.RemoveStatusCondition(&status.Conditions, absent)
}

func (f *Frame[T]) set(obj T, conditionType string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&obj.GetCommonStatus().Conditions, metav1.Condition{
		Type: conditionType, Status: value, Reason: reason, Message: message,
		ObservedGeneration: obj.GetGeneration(),
	})
}

// patchStatus writes what differs between the two, and nothing when nothing does. It is a conflict when obj is not any more what it was:
// what was found out of one object is never written to the next one of its name, which nothing but the lock keeps out.
func (f *Frame[T]) patchStatus(ctx context.Context, before, obj T) error {
	// Comparing the patch would cost the two of them as JSON, at each start for every object there is.
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	before.SetResourceVersion(obj.GetResourceVersion()) // a step may have written a part of the status
	data, err := client.MergeFrom(before).Data(obj)
	if err != nil {
		return fmt.Errorf("comparing the status of %s: %w", name(obj), err)
	}
	if string(data) == "{}" {
		return nil
	}
	told := identify(ctx, before, obj)
	if err := f.Client.Status().Patch(told, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of %s: %w", name(obj), err)
	}
	if takes(before, obj) {
		// Nobody else looks for who holds it before the cache shows it.
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(obj), before.DeepCopyObject().(T)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("waiting for the status of %s: %w", name(obj), err)
		}
	}
	return nil
}

// identify returns a context for writing a status, by which the audit log is told when another id comes into force.
func identify(ctx context.Context, before, obj client.Object) context.Context {
	identified, ok := obj.(v1alpha1.Identified)
	if !ok {
		return ctx
	}
	_, was := before.(v1alpha1.Identified).IDs()
	_, is := identified.IDs()
	if *was == *is {
		return ctx
	}
	return audit.Because(ctx, audit.Event{Action: "identify", Reason: fmt.Sprintf("status.id was %d and is %d", *was, *is)})
}

// takes reports whether an object holds something that it did not hold before.
func takes[T v1alpha1.Object](before, obj T) bool {
	had := before.GetCommonStatus().Claims
	return slices.ContainsFunc(obj.GetCommonStatus().Claims, func(k string) bool { return !slices.Contains(had, k) })
}

// tell records an event when the object begins or ceases to be in trouble. That a new object became ready is no news
// worth a write.
func (f *Frame[T]) tell(before, obj T) {
	was := meta.FindStatusCondition(before.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(obj.GetCommonStatus().Conditions, v1alpha1.ConditionReady)
	switch {
	case is.Status == metav1.ConditionFalse && (was == nil || was.Reason != is.Reason):
		f.Events.Eventf(obj, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		f.Events.Eventf(obj, nil, corev1.EventTypeNormal, is.Reason, "Reconcile", "in force")
	}
}

// ignoreConflict turns a conflict into nothing: the newer object is already on its way through the watch.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
