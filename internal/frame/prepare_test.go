package frame_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/frame"
)

func TestFinalizer(t *testing.T) {
	deleted := func(u *v1alpha1.User) {
		u.Finalizers = []string{finalizer, "example.org/other"}
		u.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	never := func(t *testing.T) step {
		t.Helper()
		return func(context.Context, *v1alpha1.User) error { t.Error("this step is not to be called"); return nil }
	}

	t.Run("is added before a step runs", func(t *testing.T) {
		w := newWorld(t)
		f := frame.New(w.base(), frame.WithFinalizer(finalizer, never(t)))
		_, err := w.run(f, func(ctx context.Context, u *v1alpha1.User) error {
			var stored v1alpha1.User
			w.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(u), &stored)).To(Succeed())
			w.Expect(stored.Finalizers).To(Equal([]string{finalizer}))
			return nil
		})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.condition("Ready").Status).To(Equal(metav1.ConditionTrue))
	})

	t.Run("is removed alone when its step succeeds", func(t *testing.T) {
		w := newWorld(t, deleted)
		result, err := w.run(frame.New(w.base(), frame.WithFinalizer(finalizer, ends(nil))), never(t))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(result).To(Equal(reconcile.Result{}))
		w.read()
		w.Expect(w.user.Finalizers).To(Equal([]string{"example.org/other"}))

		w.writes = 0
		_, err = w.run(frame.New(w.base(), frame.WithFinalizer(finalizer, never(t))), never(t))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.writes).To(BeZero())
	})

	t.Run("passes its step the id that a replace has removed", func(t *testing.T) {
		w := newWorld(t, deleted, func(u *v1alpha1.User) { u.Spec.ID, u.Status.ID = 0, 7 })
		var known int64
		_, err := w.run(frame.New(w.base(), frame.WithFinalizer(finalizer, func(_ context.Context, u *v1alpha1.User) error {
			known = u.Spec.ID
			return nil
		})), never(t))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(known).To(Equal(int64(7)))
		w.read()
		w.Expect(w.user.Spec.ID).To(BeZero(), "it is not written")
	})

	t.Run("is not removed by a write from a stale cache", func(t *testing.T) {
		w := newWorld(t, deleted)
		stale := w.user.DeepCopy()
		fresh := w.user.DeepCopy()
		fresh.Labels = map[string]string{"changed": "meanwhile"}
		w.Expect(w.client.Update(t.Context(), fresh)).To(Succeed())
		_, err := frame.New(w.base(), frame.WithFinalizer(finalizer, ends(nil))).Run(t.Context(), stale)
		w.Expect(err).NotTo(HaveOccurred())
		w.read()
		w.Expect(w.user.Finalizers).To(ContainElement(finalizer))
	})

	for title, tt := range map[string]struct {
		err     error
		message string
		after   time.Duration
		fails   bool
	}{
		"waits":            {frame.Waiting("Absent", "for the volume"), "deleting: for the volume", 0, false},
		"waits for a time": {frame.WaitingFor(time.Minute, "Absent", "for the volume"), "deleting: for the volume", time.Minute, false},
		"fails":            {errors.New("the disc is full"), "deleting: the disc is full", 0, true},
	} {
		t.Run("explains in conditions why its step "+title, func(t *testing.T) {
			w := newWorld(t, deleted)
			f := frame.New(w.base(), frame.WithFinalizer(finalizer, ends(tt.err)))
			result, err := w.run(f, never(t))
			w.Expect(err != nil).To(Equal(tt.fails), "err is %v", err)
			w.Expect(result.RequeueAfter).To(Equal(tt.after))
			for _, c := range []string{"Ready", "Reconciling"} {
				w.Expect(*w.condition(c)).To(And(HaveField("Reason", v1alpha1.ReasonDeleting), HaveField("Message", tt.message)))
			}
			w.Expect(w.user.Finalizers).To(ContainElement(finalizer))
			w.writes = 0
			_, _ = w.run(f)
			w.Expect(w.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestRun_ignoresDeletedObjectsWithoutFinalizer(t *testing.T) {
	w := newWorld(t, func(u *v1alpha1.User) {
		u.Finalizers = []string{"example.org/other"}
		u.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	})
	_, err := w.run(frame.New[*v1alpha1.User](w.base()), ends(errors.New("not to be called")))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.writes).To(BeZero())
}

// counter allocates the given ids.
type counter struct {
	next   int64
	holder client.Object
	former string
	err    error
}

func (c *counter) Allocate(context.Context, v1alpha1.Identified) (int64, error) { return c.next, c.err }

func (c *counter) Holder(context.Context, v1alpha1.Identified, int64) (client.Object, error) {
	return c.holder, c.err
}

func (c *counter) Former(context.Context, v1alpha1.Identified, int64) (string, error) {
	return c.former, nil
}

func TestIDs(t *testing.T) {
	older := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	inNamespace := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: "team"}}
	tests := map[string]struct {
		spec, status         int64
		ids                  counter
		wantSpec, wantStatus int64
		reason, message      string
	}{
		"a missing one is allocated":                    {0, 0, counter{next: 7}, 7, 7, "Ready", ""},
		"a removed one is restored":                     {0, 5, counter{next: 7}, 5, 5, "Ready", ""},
		"a pinned one is used":                          {9, 0, counter{next: 7}, 9, 9, "Ready", ""},
		"one in force stays":                            {9, 9, counter{next: 7}, 9, 9, "Ready", ""},
		"one in use is reported":                        {9, 0, counter{holder: older}, 9, 0, "AlreadyExists", "id 9 is held by bob; omit spec.id to get a free one"},
		"the holder is named with its namespace":        {9, 0, counter{holder: inNamespace}, 9, 0, "AlreadyExists", "id 9 is held by team/acme; omit spec.id to get a free one"},
		"one of a former object comes into force later": {9, 0, counter{former: "team/old"}, 9, 0, "Progressing", "id 9 belonged to team/old; waiting until nobody can declare it for team/old again"},
		"one in force does not wait for a record":       {9, 9, counter{former: "team/old"}, 9, 9, "Ready", ""},
		"a missing namespace is reported": {0, 0, counter{err: fmt.Errorf("creating the counters: %w",
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "platform"))}, 0, 0, "Failed", `allocating an id: creating the counters: namespaces "platform" not found`},
		"a failed allocation is reported":   {0, 0, counter{err: errors.New("all are used")}, 0, 0, "Failed", "allocating an id: all are used"},
		"a failed confirmation is reported": {9, 0, counter{err: errors.New("no")}, 9, 0, "Failed", "looking up who holds id 9: no"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t, func(u *v1alpha1.User) { u.Spec.ID, u.Status.ID = tt.spec, tt.status })
			stepped := false
			f := frame.New(w.base(), frame.WithIDs[*v1alpha1.User](&tt.ids))
			_, err := w.run(f, func(context.Context, *v1alpha1.User) error { stepped = true; return nil })
			w.Expect(err != nil).To(Equal(tt.ids.err != nil), "err is %v", err)
			w.Expect(*w.condition("Ready")).To(And(HaveField("Reason", tt.reason), HaveField("Message", tt.message)))
			w.Expect(w.user.Spec.ID).To(Equal(tt.wantSpec))
			w.Expect(w.user.Status.ID).To(Equal(tt.wantStatus))
			w.Expect(stepped).To(Equal(tt.reason == "Ready"), "no step runs for an object without an id of its own")

			w.writes = 0
			_, _ = w.run(f)
			w.Expect(w.writes).To(BeZero(), "writes of a second run")
		})
	}
}

func TestIDs_areNotAllocatedFromStaleCache(t *testing.T) {
	w := newWorld(t)
	stale, fresh := w.user.DeepCopy(), w.user.DeepCopy()
	fresh.Spec.ID = 1
	w.Expect(w.client.Update(t.Context(), fresh)).To(Succeed())
	_, err := frame.New(w.base(), frame.WithIDs[*v1alpha1.User](&counter{next: 2})).Run(t.Context(), stale)
	w.Expect(err).NotTo(HaveOccurred())
	w.read()
	w.Expect(w.user.Spec.ID).To(BeEquivalentTo(1))
}

func TestIDs_areWithdrawnIfAnotherObjectHoldsThem(t *testing.T) {
	w := newWorld(t, func(u *v1alpha1.User) {
		u.Spec.ID, u.Status.ID = 7, 7
		u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	})
	ids := &counter{next: 9, holder: &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}}
	f := frame.New(w.base(), frame.WithIDs[*v1alpha1.User](ids))
	_, err := w.run(f)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(HaveField("Reason", v1alpha1.ReasonAlreadyExists))
	w.Expect(w.events.all).To(ConsistOf(ContainSubstring("id 7 is held by bob; omit spec.id to get a free one")))
	w.Expect(w.user.Status.ID).To(BeZero(), "nobody takes it for the holder")

	w.user.Spec.ID, ids.holder = 0, nil
	w.Expect(w.client.Update(t.Context(), w.user)).To(Succeed())
	_, err = w.run(f)
	w.Expect(err).NotTo(HaveOccurred())
	w.read()
	w.Expect(w.user.Status.ID).To(Equal(int64(9)), "a free one")
}
