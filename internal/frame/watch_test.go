package frame

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestUnseen_enqueuesNewObjectsFirstAtStart(t *testing.T) {
	g := NewWithT(t)
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	for _, one := range []struct {
		name                 string
		generation, observed int64
	}{{"old-1", 1, 1}, {"old-2", 3, 3}, {"new", 1, -1}, {"old-3", 2, 2}, {"changed", 3, 2}} {
		group := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Name: one.name, Generation: one.generation}}
		group.Status.ObservedGeneration = one.observed
		e := event.CreateEvent{Object: group, IsInInitialList: true}
		(&handler.EnqueueRequestForObject{}).Create(t.Context(), e, queue)
		if unseen.Create(e) {
			first.Create(t.Context(), e, queue)
		}
	}
	var order []string
	for range 5 {
		request, _ := queue.Get()
		order = append(order, request.Name)
		queue.Done(request)
	}
	g.Expect(order[:2]).To(ConsistOf("new", "changed"))
	g.Expect(order[2:]).To(ConsistOf("old-1", "old-2", "old-3"))
	g.Expect(queue.Len()).To(BeZero(), "each is there once")
}

func TestUnseen_ignoresObjectsAfterStart(t *testing.T) {
	g := NewWithT(t)
	group := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Name: "new", Generation: 1}}
	g.Expect(unseen.Create(event.CreateEvent{Object: group})).To(BeFalse())
}

func TestNews_dropsOwnWritesOfObjectsThatAreRetried(t *testing.T) {
	now := &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	full := errors.New("the disk is full")
	for title, tt := range map[string]struct {
		result  error
		deleted *metav1.Time
		refused error
		news    bool
	}{
		"any error":               {result: full},
		"failed":                  {result: Failed("Full", "why")},
		"failed to be deleted":    {result: full, deleted: now},
		"waiting for a time":      {result: WaitingFor(time.Minute, "Absent", "who")},
		"progressing for a time":  {result: Progressing(time.Minute, "Importing", "half")},
		"waiting":                 {result: Waiting("Absent", "who"), news: true},
		"progressing":             {result: Progressing(0, "Importing", "half"), news: true},
		"stalled":                 {result: Stalled("Taken", "by bob"), news: true},
		"well":                    {news: true},
		"well, to look again":     {result: RequeueAfter(time.Hour), news: true},
		"a write that is refused": {result: full, refused: errors.New("no"), news: true},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
			ada := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada", UID: "1", Finalizers: []string{"forgeplane.dev/test"}, DeletionTimestamp: tt.deleted}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ada).WithStatusSubresource(ada).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if tt.refused != nil {
						return tt.refused
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			}).Build()
			step := func(context.Context, *v1alpha1.User) error { return tt.result }
			f := New(Base{Client: c, Events: silent{}}, WithFinalizer("forgeplane.dev/test", step))
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(ada), ada)).To(Succeed())
			is := ada.DeepCopy()
			_, _ = f.Run(t.Context(), is, step)
			g.Expect(f.news().Update(event.UpdateEvent{ObjectOld: ada, ObjectNew: is})).To(Equal(tt.news))

			later := is.DeepCopy()
			later.ResourceVersion += "1"
			g.Expect(f.news().Update(event.UpdateEvent{ObjectOld: is, ObjectNew: later})).To(BeTrue(), "a later write of somebody else")
		})
	}
}

func TestNews_seesDeclarationBehindOwnWrite(t *testing.T) {
	g := NewWithT(t)
	f := &Frame[*v1alpha1.User]{}
	was := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada", UID: "1", ResourceVersion: "7", Generation: 1}}
	is := was.DeepCopy()
	is.ResourceVersion, is.Generation = "9", 2
	f.replaced.Store(was.UID, was.ResourceVersion)
	g.Expect(f.news().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})).To(BeTrue(), "a relist shows both changes at once")
}

func TestNews_forgetsDeletedObjects(t *testing.T) {
	g := NewWithT(t)
	f := &Frame[*v1alpha1.User]{}
	ada := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "ada", UID: "1", ResourceVersion: "7"}}
	f.replaced.Store(ada.UID, ada.ResourceVersion)
	g.Expect(f.news().Delete(event.DeleteEvent{Object: ada})).To(BeTrue())
	_, kept := f.replaced.Load(ada.UID)
	g.Expect(kept).To(BeFalse())
}

// silent records no events.
type silent struct{}

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func TestChanged_reactsToOnePartOfObject(t *testing.T) {
	g := NewWithT(t)
	path := changed(func(o client.Object) string { return o.(*v1alpha1.Group).Status.FullPath })
	group := func(generation int64, path, message string) *v1alpha1.Group {
		o := &v1alpha1.Group{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: generation}}
		o.Status.FullPath, o.Status.Conditions = path, []metav1.Condition{{Message: message}}
		return o
	}
	was := group(1, "a", "")
	for _, tt := range []struct {
		is    *v1alpha1.Group
		wakes bool
	}{{group(1, "a", "another"), false}, {group(1, "b", ""), true}, {group(2, "a", ""), true}} {
		g.Expect(path.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: tt.is})).To(Equal(tt.wakes))
	}
	g.Expect(path.Delete(event.DeleteEvent{Object: was})).To(BeTrue())
	g.Expect(path.Create(event.CreateEvent{Object: was})).To(BeTrue())
}

func TestCounted_combinesManyChanges(t *testing.T) {
	g := NewWithT(t)
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	const later = 100 * time.Millisecond
	storage := func(o client.Object) string { return o.(*v1alpha1.Project).Status.Storage }
	h := counted(storage, later, func(_ context.Context, o client.Object) []reconcile.Request {
		if storage(o) == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: storage(o)}}}
	})
	on := func(storage, message string) *v1alpha1.Project {
		p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		p.Status.Storage, p.Status.Conditions = storage, []metav1.Condition{{Message: message}}
		return p
	}
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: on("still", ""), ObjectNew: on("still", "another")}, queue)
	h.Create(t.Context(), event.CreateEvent{Object: on("old", ""), IsInInitialList: true}, queue)
	h.Create(t.Context(), event.CreateEvent{Object: on("", "")}, queue)
	begun := time.Now()
	for range 100 {
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: on("", ""), ObjectNew: on("chosen", "")}, queue)
	}
	h.Create(t.Context(), event.CreateEvent{Object: on("restored", "")}, queue)
	h.Delete(t.Context(), event.DeleteEvent{Object: on("left", "")}, queue)
	var woken []string
	for range 3 {
		request, _ := queue.Get()
		g.Expect(time.Since(begun)).To(BeNumerically(">=", later))
		woken = append(woken, request.Name)
		queue.Done(request)
	}
	g.Expect(woken).To(ConsistOf("chosen", "restored", "left"))
	g.Expect(queue.Len()).To(BeZero())
}
