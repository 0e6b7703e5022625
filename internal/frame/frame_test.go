package frame_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/frame"
)

const finalizer = "forgeplane.dev/test"

// world is an API server in memory, with one user.
type world struct {
	*WithT
	client client.Client
	events *events
	writes int
	// refuse is the error of every write, if it is set.
	refuse error
	user   *v1alpha1.User
}

func newWorld(t *testing.T, change ...func(*v1alpha1.User)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &world{WithT: NewWithT(t), events: &events{}}
	w.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	w.user = &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada", UID: "1", Generation: 3}}
	for _, c := range change {
		c(w.user)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.user).WithStatusSubresource(w.user).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if w.writes++; w.refuse != nil {
					return w.refuse
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if w.writes++; w.refuse != nil {
					return w.refuse
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.read()
	return w
}

func (w *world) base() frame.Base { return frame.Base{Client: w.client, Events: w.events} }

func (w *world) read() {
	key := client.ObjectKeyFromObject(w.user)
	w.user = &v1alpha1.User{}
	w.Expect(w.client.Get(context.Background(), key, w.user)).To(Succeed())
}

// run reconciles the user like a controller, which reads them first.
func (w *world) run(f *frame.Frame[*v1alpha1.User], steps ...frame.Step[*v1alpha1.User]) (reconcile.Result, error) {
	w.read()
	return f.Run(context.Background(), w.user, steps...)
}

func (w *world) condition(conditionType string) *metav1.Condition {
	w.read()
	return meta.FindStatusCondition(w.user.Status.Conditions, conditionType)
}

// events records the events.
type events struct{ all []string }

func (e *events) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	e.all = append(e.all, fmt.Sprintf("%s %s %s %s", eventType, reason, regarding.(client.Object).GetName(), fmt.Sprintf(note, args...)))
}

type step = frame.Step[*v1alpha1.User]

// ends returns a step that returns err.
func ends(err error) step { return func(context.Context, *v1alpha1.User) error { return err } }

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "users"}, "ada", errors.New("changed meanwhile"))
}

func TestRun_setsConditionsFromOutcome(t *testing.T) {
	plain := errors.New("the disc is full: https://ada:secret@example.org")
	tests := map[string]struct {
		steps   []step
		ready   metav1.ConditionStatus
		beside  string
		reason  string
		message string
		after   time.Duration
		fails   bool
	}{
		"well":                 {steps: []step{ends(nil)}, ready: metav1.ConditionTrue, reason: "Ready"},
		"well, without steps":  {ready: metav1.ConditionTrue, reason: "Ready"},
		"well, to look again":  {steps: []step{ends(frame.RequeueAfter(time.Hour))}, ready: metav1.ConditionTrue, reason: "Ready", after: time.Hour},
		"to look again soon":   {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.RequeueAfter(time.Minute))}, ready: metav1.ConditionTrue, reason: "Ready", after: time.Minute},
		"again, and then fail": {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.Failed("Full", "why"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Full", message: "why", fails: true},
		"again, and then wait": {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.Waiting("Absent", "who"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Absent", message: "who", after: time.Hour},
		"wait, due before":     {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.WaitingFor(time.Minute, "Absent", "who"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Absent", message: "who", after: time.Minute},
		"wait, due later":      {steps: []step{ends(frame.RequeueAfter(time.Minute)), ends(frame.WaitingFor(time.Hour, "Absent", "who"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Absent", message: "who", after: time.Minute},
		"again, and stalled":   {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.Stalled("Taken", "by bob"))}, ready: metav1.ConditionFalse, beside: "Stalled", reason: "Taken", message: "by bob", after: time.Hour},
		"stalled":              {steps: []step{ends(frame.Stalled("Taken", "by %s", "bob"))}, ready: metav1.ConditionFalse, beside: "Stalled", reason: "Taken", message: "by bob"},
		"waiting":              {steps: []step{ends(frame.Waiting("Absent", "who"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Absent", message: "who"},
		"waiting for a time":   {steps: []step{ends(frame.WaitingFor(time.Minute, "Absent", "who"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Absent", message: "who", after: time.Minute},
		"progressing":          {steps: []step{ends(frame.Progressing(time.Minute, "Importing", "half"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Importing", message: "half", after: time.Minute},
		"settled":              {steps: []step{ends(frame.Settled("Expired", "at %s", "noon"))}, ready: metav1.ConditionTrue, reason: "Expired", message: "at noon"},
		"again, and settled":   {steps: []step{ends(frame.RequeueAfter(time.Hour)), ends(frame.Settled("Expired", "at noon"))}, ready: metav1.ConditionTrue, reason: "Expired", message: "at noon", after: time.Hour},
		"failed":               {steps: []step{ends(frame.Failed("Full", "why"))}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Full", message: "why", fails: true},
		"any other error":      {steps: []step{ends(plain)}, ready: metav1.ConditionFalse, beside: "Reconciling", reason: "Failed", message: "the disc is full: https://example.org", fails: true},
		"a wrapped outcome":    {steps: []step{ends(fmt.Errorf("more: %w", frame.Stalled("Taken", "by bob")))}, ready: metav1.ConditionFalse, beside: "Stalled", reason: "Taken", message: "more: by bob"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			f := frame.New[*v1alpha1.User](w.base())
			result, err := w.run(f, tt.steps...)
			w.Expect(err != nil).To(Equal(tt.fails), "err is %v", err)
			w.Expect(result.RequeueAfter).To(Equal(tt.after))

			w.Expect(*w.condition("Ready")).To(And(
				HaveField("Status", tt.ready), HaveField("Reason", tt.reason), HaveField("Message", tt.message), HaveField("ObservedGeneration", w.user.Generation)))
			w.Expect(w.user.Status.ObservedGeneration).To(Equal(w.user.Generation))
			for _, other := range []string{"Reconciling", "Stalled"} {
				if other != tt.beside {
					w.Expect(w.condition(other)).To(BeNil())
					continue
				}
				w.Expect(*w.condition(other)).To(And(
					HaveField("Status", metav1.ConditionTrue), HaveField("Reason", tt.reason), HaveField("Message", tt.message)))
			}

			w.writes = 0
			_, _ = w.run(f, tt.steps...)
			w.Expect(w.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestRun_accountsStepsToTenant(t *testing.T) {
	var who []fair.Key
	step := func(ctx context.Context, _ *v1alpha1.User) error {
		who = append(who, fair.From(ctx))
		return errors.New("enough")
	}
	for _, namespace := range []string{"", "acme"} {
		w := newWorld(t)
		w.user.Namespace = namespace // as for an object of a namespaced kind
		_, _ = frame.New[*v1alpha1.User](w.base()).Run(t.Context(), w.user, step)
	}
	w := newWorld(t)
	tenant := func(u *v1alpha1.User) fair.Key { return fair.Namespace("of " + u.Name) }
	_, _ = frame.New(w.base(), frame.WithTenant(tenant)).Run(t.Context(), w.user, step)
	w.Expect(who).To(Equal([]fair.Key{{}, fair.Namespace("acme"), fair.Namespace("of ada")}), "one without a namespace is for Forgeplane itself")
}

func TestRun_retriesConflictsSilently(t *testing.T) {
	deleted := func(u *v1alpha1.User) {
		u.Finalizers = []string{finalizer}
		u.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	clash := ends(fmt.Errorf("writing Secret ada: %w", conflict()))
	for title, change := range map[string]func(*v1alpha1.User){"in a step": func(*v1alpha1.User) {}, "in the finalizer": deleted} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, change)
			f := frame.New(w.base(), frame.WithFinalizer(finalizer, clash))
			_, _ = w.run(f, ends(nil))
			w.writes = 0
			result, err := w.run(f, clash)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(result.RequeueAfter).To(Equal(time.Second))
			w.Expect(w.writes).To(BeZero())
			w.Expect(w.events.all).To(BeEmpty())
		})
	}
}

func TestRun_retriesLaterIfTenantUsesItsSlots(t *testing.T) {
	w := newWorld(t)
	slots := fair.New("test", "requests", fair.Limits{Total: 2, Share: 1})
	take := func(ctx context.Context, _ *v1alpha1.User) error {
		leave, err := slots.Enter(ctx)
		if err != nil {
			return fmt.Errorf("looking at the repository: %w", err)
		}
		leave()
		return nil
	}
	f := frame.New[*v1alpha1.User](w.base())
	_, err := w.run(f, take)
	w.Expect(err).NotTo(HaveOccurred())
	leave, err := slots.Enter(t.Context()) // counts for Forgeplane itself, like the user
	w.Expect(err).NotTo(HaveOccurred())
	w.writes = 0
	result, err := w.run(f, take) // it must return: others wait for the worker
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(And(BeNumerically(">=", 10*time.Second), BeNumerically("<=", 20*time.Second)))
	w.Expect(w.writes).To(BeZero(), "that says nothing about the object")
	w.Expect(w.events.all).To(BeEmpty())
	leave()
	_, err = w.run(f, take)
	w.Expect(err).NotTo(HaveOccurred())

	leave, err = slots.Enter(t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	defer leave()
	fresh := newWorld(t)
	result, err = fresh.run(frame.New[*v1alpha1.User](fresh.base()), take)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically(">=", 10*time.Second))
	ready := fresh.condition(v1alpha1.ConditionReady)
	w.Expect(ready.Reason).To(Equal(v1alpha1.ReasonFailed))
	w.Expect(ready.Message).To(ContainSubstring("You have 1 of 1 requests running at once"), "who waits for an object reads why")
}

func TestRun_stopsAtFirstUnsuccessfulStep(t *testing.T) {
	w := newWorld(t)
	var called []string
	mark := func(name string, err error) step {
		return func(context.Context, *v1alpha1.User) error { called = append(called, name); return err }
	}
	f := frame.New[*v1alpha1.User](w.base())
	_, err := w.run(f, mark("a", nil), mark("b", frame.RequeueAfter(time.Second)), mark("c", frame.Waiting("Absent", "who")), mark("d", nil))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(called).To(Equal([]string{"a", "b", "c"}))
}

func TestEvents_areWarningsOnlyAboutTrouble(t *testing.T) {
	w := newWorld(t)
	f := frame.New[*v1alpha1.User](w.base())
	trouble, other := ends(frame.Stalled("Taken", "by bob")), ends(frame.Waiting("Absent", "who"))
	told := func(steps ...step) []string {
		w.events.all = nil
		_, err := w.run(f, steps...)
		w.Expect(err).NotTo(HaveOccurred())
		return w.events.all
	}
	w.Expect(told()).To(BeEmpty(), "when it became ready at once")
	w.Expect(told(trouble)).To(Equal([]string{"Warning Taken ada by bob"}))
	w.Expect(told(trouble)).To(BeEmpty(), "when the trouble went on")
	w.Expect(told(ends(frame.Stalled("Taken", "by eve")))).To(BeEmpty(), "when only the words changed")
	w.Expect(told(other)).To(Equal([]string{"Warning Absent ada who"}))
	w.Expect(told()).To(Equal([]string{"Normal Ready ada in force"}))
	w.Expect(told()).To(BeEmpty(), "when it stayed ready")
	w.Expect(told(ends(frame.Progressing(0, "Importing", "half")))).To(Equal([]string{"Normal Importing ada half"}))
	w.Expect(told(ends(frame.Settled("Expired", "at noon")))).To(Equal([]string{"Normal Expired ada at noon"}))
	w.Expect(told(ends(frame.Settled("Expired", "at noon")))).To(BeEmpty(), "when it stayed settled")
	w.Expect(told()).To(Equal([]string{"Normal Ready ada in force"}))
}

func TestEvents_areOrdinaryWhileANewObjectWaitsForAnother(t *testing.T) {
	for title, tt := range map[string]struct {
		age  time.Duration
		ends error
		want string
	}{
		"new, and the other is missing":     {time.Second, frame.Waiting(v1alpha1.ReasonReferenceNotFound, "who"), "Normal ReferenceNotFound ada who"},
		"new, and the other is not ready":   {time.Second, frame.Waiting(v1alpha1.ReasonReferenceNotReady, "who"), "Normal ReferenceNotReady ada who"},
		"new, and waits for something else": {time.Second, frame.Waiting(v1alpha1.ReasonBlocked, "who"), "Warning Blocked ada who"},
		"new, and stalled":                  {time.Second, frame.Stalled(v1alpha1.ReasonReferenceNotFound, "who"), "Warning ReferenceNotFound ada who"},
		"an hour old":                       {time.Hour, frame.Waiting(v1alpha1.ReasonReferenceNotFound, "who"), "Warning ReferenceNotFound ada who"},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, func(u *v1alpha1.User) { u.CreationTimestamp = metav1.NewTime(time.Now().Add(-tt.age)) })
			_, err := w.run(frame.New[*v1alpha1.User](w.base()), ends(tt.ends))
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.events.all).To(Equal([]string{tt.want}))
		})
	}
}

func TestConditions_replaceEachOther(t *testing.T) {
	w := newWorld(t)
	f := frame.New[*v1alpha1.User](w.base())
	stalled, waiting := ends(frame.Stalled("Taken", "by bob")), ends(frame.Waiting("Absent", "who"))
	for _, after := range []struct {
		step step
		want []string
	}{
		{stalled, []string{"Ready", "Stalled"}}, {waiting, []string{"Ready", "Reconciling"}}, {stalled, []string{"Ready", "Stalled"}},
		{ends(nil), []string{"Ready"}}, {waiting, []string{"Ready", "Reconciling"}}, {ends(nil), []string{"Ready"}},
	} {
		_, err := w.run(f, after.step)
		w.Expect(err).NotTo(HaveOccurred())
		w.read()
		var is []string
		for _, c := range w.user.Status.Conditions {
			is = append(is, c.Type)
		}
		w.Expect(is).To(ConsistOf(after.want))
	}
}

func TestCondition_keepsItsTransitionTime(t *testing.T) {
	long := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w := newWorld(t, func(u *v1alpha1.User) {
		u.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Absent", LastTransitionTime: long}}
	})
	f := frame.New[*v1alpha1.User](w.base())
	_, err := w.run(f, ends(frame.Waiting("Other", "why")))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.condition("Ready").LastTransitionTime.Time).To(BeTemporally("==", long.Time))
	_, err = w.run(f)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.condition("Ready").LastTransitionTime.Time).To(BeTemporally(">", long.Time))
}

func TestRun_handlesAnswersOfAPIServer(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "users"}, "ada")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "ada", errors.New("no"))
	tests := map[string]struct {
		answer error
		fails  bool
	}{
		"a conflict is quiet":                                           {conflict(), false},
		"an object that is gone needs nothing":                          {notFound, false},
		"any other refusal is tried again":                              {forbidden, true},
		"a broken connection is tried again":                            {errors.New("connection refused"), true},
		"a wrapped conflict is quiet":                                   {fmt.Errorf("patching: %w", conflict()), false},
		"an object that is gone needs nothing, also in a wrapped error": {fmt.Errorf("patching: %w", notFound), false},
	}
	for title, tt := range tests {
		for writing, options := range map[string][]frame.Option[*v1alpha1.User]{
			"the status":    nil,
			"the finalizer": {frame.WithFinalizer(finalizer, ends(nil))},
		} {
			t.Run(title+"/"+writing, func(t *testing.T) {
				w := newWorld(t)
				w.refuse = tt.answer
				result, err := w.run(frame.New(w.base(), options...))
				w.Expect(err != nil).To(Equal(tt.fails), "err is %v", err)
				if apierrors.IsConflict(tt.answer) && options == nil {
					w.Expect(result).To(Equal(reconcile.Result{RequeueAfter: time.Second}), "a watch may not report the other write")
				} else {
					w.Expect(result).To(Equal(reconcile.Result{}), "the newer object will follow")
				}
				w.Expect(w.events.all).To(BeEmpty(), "what was not written is not told")
			})
		}
	}
}

func TestInForce(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string) v1alpha1.CommonStatus {
		return v1alpha1.CommonStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}}
	}
	user := func(status v1alpha1.CommonStatus, deleted *metav1.Time) client.Object {
		return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}, Status: v1alpha1.UserStatus{CommonStatus: status}}
	}
	tests := map[string]struct {
		obj  client.Object
		want bool
	}{
		"ready":            {user(condition(metav1.ConditionTrue, "Ready"), nil), true},
		"settled":          {user(condition(metav1.ConditionTrue, "Expired"), nil), false},
		"not ready":        {user(condition(metav1.ConditionFalse, "Failed"), nil), false},
		"never reconciled": {user(v1alpha1.CommonStatus{}, nil), false},
		"being deleted":    {user(condition(metav1.ConditionTrue, "Ready"), &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}), false},
		"of another kind":  {&metav1.PartialObjectMetadata{}, false},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) { NewWithT(t).Expect(frame.InForce(tt.obj)).To(Equal(tt.want)) })
	}
}

// Clients of the REST API can delete an object and create another one of the same name.
func TestStatus_isNotWrittenToRecreatedObject(t *testing.T) {
	w := newWorld(t)
	replace := func(ctx context.Context, u *v1alpha1.User) error {
		w.Expect(w.client.Delete(ctx, u.DeepCopy())).To(Succeed())
		w.Expect(w.client.Create(ctx, &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: u.Name, UID: "2"}})).To(Succeed())
		u.Status.ID = 7
		return nil
	}
	_, err := w.run(frame.New[*v1alpha1.User](w.base()), replace)
	w.Expect(err).NotTo(HaveOccurred(), "the new one is on its way")
	w.read()
	w.Expect(w.user.UID).To(BeEquivalentTo("2"))
	w.Expect(w.user.Status).To(Equal(v1alpha1.UserStatus{}))
	w.Expect(w.events.all).To(BeEmpty())
}
