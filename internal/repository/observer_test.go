package repository_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/patience"
)

// watched runs an observer on a shop until the test ends.
type watched struct {
	*shop
	observer *repository.Observer
	client   client.Client
	patches  atomic.Int32
	// refuse makes every patch fail while it is set, and refused counts the failed patches.
	refuse  atomic.Bool
	refused atomic.Int32
	// looked receives the name of each project whose observation begins, if there is a reader.
	looked chan string
	// The channel who receives the tenant for whom the observer works when it writes.
	who chan fair.Key
}

func watch(t *testing.T) *watched {
	t.Helper()
	g := NewWithT(t)
	w := &watched{shop: newShop(t, "sha1"), looked: make(chan string, 100), who: make(chan fair.Key, 100)}
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	base := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.project).WithStatusSubresource(w.project).Build()
	w.client = base
	w.observer = repository.NewObserver(w.repos, interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			select {
			case w.looked <- key.Name:
			default:
			}
			return c.Get(ctx, key, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if w.refuse.Load() {
				w.refused.Add(1)
				return errors.New("the API server is not there")
			}
			w.patches.Add(1)
			w.who <- fair.From(ctx)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.observer.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()), "the observer ends with its context")
	})
	return w
}

func (w *watched) status(t *testing.T) func() v1alpha1.ProjectStatus {
	return func() v1alpha1.ProjectStatus {
		var p v1alpha1.Project
		NewWithT(t).Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.project), &p)).To(Succeed())
		return p.Status
	}
}

func (w *watched) name() types.NamespacedName { return client.ObjectKeyFromObject(w.project) }

func TestObserver_writesChangesOfPush(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	commit := w.shop.client.Commit(t, "README", "hello")
	w.push(t, "main")
	w.observer.Pushed(w.name())
	head := func(s v1alpha1.ProjectStatus) string { return s.HeadCommit }
	g.Eventually(w.status(t)).WithTimeout(patience.Wait).Should(WithTransform(head, Equal(commit)))

	second := w.shop.client.Commit(t, "README", "hello again")
	w.push(t, "main")
	w.observer.Pushed(w.name())
	g.Eventually(w.status(t)).WithTimeout(patience.Wait).Should(WithTransform(head, Equal(second)))
}

func TestObserver_writesNothingWithoutChanges(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	w.observer.Pushed(w.name())
	g.Eventually(w.patches.Load).WithTimeout(patience.Wait).Should(BeEquivalentTo(1))
	w.observer.Pushed(w.name())
	// The observer processes its queue in order: when it begins with the next project, it has finished this one.
	w.observer.Pushed(types.NamespacedName{Namespace: "acme", Name: "next"})
	g.Eventually(w.looked).WithTimeout(patience.Wait).Should(Receive(Equal("next")))
	g.Expect(w.patches.Load()).To(BeEquivalentTo(1))
}

func TestObserver_retriesFailedWrites(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	commit := w.shop.client.Commit(t, "README", "hello")
	w.push(t, "main")
	w.refuse.Store(true)
	w.observer.Pushed(w.name())
	g.Eventually(w.refused.Load).WithTimeout(patience.Wait).Should(BeNumerically(">=", 2))
	w.refuse.Store(false)
	g.Eventually(w.status(t)).WithTimeout(patience.Wait).Should(HaveField("HeadCommit", commit))
}

func TestObserver_waitsForMissingRepository(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	commit := w.shop.client.Commit(t, "README", "hello")
	w.push(t, "main")
	aside := w.git.Dir() + ".aside"
	g.Expect(os.Rename(w.git.Dir(), aside)).To(Succeed())
	w.observer.Pushed(w.name())
	for range 2 {
		g.Eventually(w.looked).WithTimeout(patience.Wait).Should(Receive(Equal("web")))
	}
	g.Expect(w.patches.Load()).To(BeZero())
	g.Expect(os.Rename(aside, w.git.Dir())).To(Succeed())
	g.Eventually(w.status(t)).WithTimeout(patience.Wait).Should(HaveField("HeadCommit", commit))
}

func TestObserver_forgetsDeletedProjects(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	w.observer.Pushed(types.NamespacedName{Namespace: "acme", Name: "gone"})
	commit := w.shop.client.Commit(t, "README", "hello")
	w.push(t, "main")
	w.observer.Pushed(w.name())
	g.Eventually(w.status(t)).WithTimeout(patience.Wait).Should(HaveField("HeadCommit", commit))
}

func TestObserver_worksForTenant(t *testing.T) {
	g := NewWithT(t)
	w := watch(t)
	w.shop.client.Commit(t, "a", "a")
	w.push(t, "HEAD:refs/heads/main")
	w.observer.Pushed(client.ObjectKeyFromObject(w.project))
	g.Eventually(w.who).WithTimeout(patience.Wait).Should(Receive(Equal(fair.Namespace("acme"))))
}
