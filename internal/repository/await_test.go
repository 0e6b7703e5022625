package repository_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// followed is a world whose informer has one listener.
type followed struct {
	*catalogtest.World
	cache.Informers
	cache.Informer
	repos *repository.Repositories
	told  toolscache.ResourceEventHandler
}

// GetInformer implements cache.Informers.
func (f *followed) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return f, nil
}

// AddEventHandler implements cache.Informer.
func (f *followed) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.told = h
	return nil, nil
}

// put adds an object and notifies the listener, like an informer.
func (f *followed) put(p *v1alpha1.Project) {
	f.Put(p)
	f.told.OnUpdate(p, p)
}

func follow(t *testing.T) *followed {
	t.Helper()
	f := &followed{World: catalogtest.New(t)}
	f.repos = repository.New(nil, f.Catalog())
	NewWithT(t).Expect(f.repos.Follow(t.Context(), f)).To(Succeed())
	return f
}

// young returns a project that was just created.
func young(change ...func(*v1alpha1.Project)) *v1alpha1.Project {
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{
		Namespace: "acme", Name: "web", UID: "web", CreationTimestamp: metav1.Time{Time: time.Now().Truncate(time.Second)},
	}}
	for _, c := range change {
		c(p)
	}
	return p
}

func observed(p *v1alpha1.Project) { p.Status.RefsChecksum = "observed" }

func condition(kind string, status metav1.ConditionStatus) func(*v1alpha1.Project) {
	return func(p *v1alpha1.Project) {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: status})
	}
}

func aged(by time.Duration) func(*v1alpha1.Project) {
	return func(p *v1alpha1.Project) { p.CreationTimestamp.Time = p.CreationTimestamp.Add(-by) }
}

// inABubble runs a test with a fake clock, which advances when every goroutine waits.
func inABubble(t *testing.T, test func(t *testing.T, f *followed)) {
	t.Helper()
	f := follow(t)
	synctest.Test(t, func(t *testing.T) { test(t, f) })
}

func TestAwait_returnsProjectWithItsRepository(t *testing.T) {
	inABubble(t, func(t *testing.T, f *followed) {
		g := NewWithT(t)
		p := young()
		f.put(p)
		found := make(chan *v1alpha1.Project, 3)
		for range 3 {
			go func() {
				now, err := f.repos.Await(t.Context(), p)
				g.Expect(err).NotTo(HaveOccurred())
				found <- now
			}()
		}
		synctest.Wait()
		f.put(young(func(p *v1alpha1.Project) { p.Status.Storage = "shard" }))
		synctest.Wait()
		g.Expect(found).To(BeEmpty(), "the shard is chosen, and nothing made yet")
		f.put(young(observed))
		synctest.Wait()
		g.Expect(found).To(HaveLen(3))
		g.Expect((<-found).Status.RefsChecksum).To(Equal("observed"))
	})
}

func TestAwait_timesOutAfterFifteenSeconds(t *testing.T) {
	inABubble(t, func(t *testing.T, f *followed) {
		g := NewWithT(t)
		p := young()
		f.put(p)
		begun := time.Now()
		_, err := f.repos.Await(t.Context(), p)
		g.Expect(err).To(MatchError(repository.ErrPending))
		g.Expect(time.Since(begun)).To(Equal(15 * time.Second))
	})
}

func TestAwait_endsWithProjectOrClient(t *testing.T) {
	inABubble(t, func(t *testing.T, f *followed) {
		g := NewWithT(t)
		p := young()
		f.put(p)
		ended := make(chan error, 2)
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, err := f.repos.Await(ctx, p); ended <- err }()
		synctest.Wait()
		leave()
		g.Expect(<-ended).To(MatchError(context.Canceled))
		go func() { _, err := f.repos.Await(t.Context(), p); ended <- err }()
		synctest.Wait()
		f.Remove(p)
		f.told.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "acme/web", Obj: p})
		g.Expect(<-ended).To(MatchError(catalog.ErrNotFound))
	})
}

func TestAwait_returnsAtOnceIfWaitingIsPointless(t *testing.T) {
	old := aged(2 * time.Minute)
	for name, tt := range map[string]struct {
		is   []func(*v1alpha1.Project)
		want error
	}{
		"it exists":                 {is: []func(*v1alpha1.Project){observed}},
		"it is imported":            {is: []func(*v1alpha1.Project){func(p *v1alpha1.Project) { p.Spec.ImportURL = "https://example.com/a.git" }}},
		"it is being deleted":       {is: []func(*v1alpha1.Project){func(p *v1alpha1.Project) { p.DeletionTimestamp = &p.CreationTimestamp }}},
		"it is stalled":             {is: []func(*v1alpha1.Project){condition("Ready", "False"), condition("Stalled", "True")}},
		"it is old and not ready":   {is: []func(*v1alpha1.Project){old, condition("Ready", "False")}},
		"no controller looks at it": {is: []func(*v1alpha1.Project){old}, want: repository.ErrPending},
	} {
		t.Run(name, func(t *testing.T) {
			inABubble(t, func(t *testing.T, f *followed) {
				g := NewWithT(t)
				p := young(tt.is...)
				f.put(p)
				begun := time.Now()
				now, err := f.repos.Await(t.Context(), p)
				g.Expect(time.Since(begun)).To(BeZero())
				if tt.want != nil {
					g.Expect(err).To(MatchError(tt.want))
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(now).To(BeIdenticalTo(p))
			})
		})
	}
}

func TestAwait_limitsWaitingCallers(t *testing.T) {
	inABubble(t, func(t *testing.T, f *followed) {
		g := NewWithT(t)
		ended := make(chan error, 1000)
		caller := int64(0)
		await := func(p *v1alpha1.Project) {
			caller++
			ctx := fair.With(t.Context(), fair.User(caller))
			go func() { _, err := f.repos.Await(ctx, p); ended <- err }()
		}
		var first *v1alpha1.Project
		for n := range 16 {
			p := young(func(p *v1alpha1.Project) { p.Name = fmt.Sprint(n); p.UID = "" })
			f.put(p)
			for range 32 {
				await(p)
			}
			if n == 0 {
				first = p
			}
		}
		synctest.Wait()
		g.Expect(ended).To(BeEmpty())
		another := young()
		f.put(another)
		await(another)
		g.Expect(<-ended).To(MatchError(repository.ErrPending), "512 wait")
		there := first.DeepCopy()
		observed(there)
		f.put(there)
		for range 32 {
			g.Expect(<-ended).NotTo(HaveOccurred())
		}
		for range 33 {
			await(another)
		}
		g.Expect(<-ended).To(MatchError(repository.ErrPending), "32 wait for the one project")
		synctest.Wait()
		g.Expect(ended).To(BeEmpty())
		for range 15*32 + 32 {
			g.Expect(<-ended).To(MatchError(repository.ErrPending))
		}
		await(another)
		synctest.Wait()
		g.Expect(ended).To(BeEmpty(), "there is room again")
		observed(another)
		f.put(another)
		g.Expect(<-ended).NotTo(HaveOccurred())
	})
}

func TestAwait_limitsPlacesOfEachCaller(t *testing.T) {
	inABubble(t, func(t *testing.T, f *followed) {
		g := NewWithT(t)
		ended := make(chan error, 1000)
		await := func(k fair.Key, p *v1alpha1.Project) {
			go func() { _, err := f.repos.Await(fair.With(t.Context(), k), p); ended <- err }()
		}
		refused := func() (n int) {
			synctest.Wait()
			for len(ended) > 0 {
				g.Expect(<-ended).To(MatchError(repository.ErrPending))
				n++
			}
			return n
		}
		for n := range 600 {
			p := young(func(p *v1alpha1.Project) { p.Name, p.UID = fmt.Sprint(n), "" })
			f.put(p)
			await(fair.User(1), p)
		}
		g.Expect(refused()).To(Equal(600-16), "of one caller")
		p := young()
		f.put(p)
		await(fair.User(2), p)
		g.Expect(refused()).To(BeZero(), "of another caller")
		for n := range 600 {
			p := young(func(p *v1alpha1.Project) { p.Name, p.UID = fmt.Sprint("a", n), "" })
			f.put(p)
			await(fair.Address(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)})), p)
		}
		g.Expect(refused()).To(Equal(600-256), "of those who have not signed in")
		await(fair.User(3), p)
		g.Expect(refused()).To(BeZero(), "of another caller, when many addresses wait")
		<-time.After(time.Minute)
		g.Expect(refused()).To(Equal(16+1+256+1), "after fifteen seconds")
	})
}
