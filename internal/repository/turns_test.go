package repository_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/patience"
)

// follower does background work after a push.
type follower interface {
	Start(ctx context.Context) error
	Pushed(project types.NamespacedName)
}

func TestFollower_doesNotDelayOtherTenants(t *testing.T) {
	engine, err := git.NewEngine(t.Context(), git.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(engine.Close)
	for name, follow := range map[string]func(client.Client) (follower, error){
		"observer": func(c client.Client) (follower, error) {
			return repository.NewObserver(repository.New(engine, catalog.New(c)), c), nil
		},
		"keeper": func(c client.Client) (follower, error) {
			l := repository.DefaultLimits
			l.Delay = 0
			return repository.NewKeeper(repository.New(engine, catalog.New(c)), c, l, prometheus.NewRegistry())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
			// Work for the attacker's projects takes until it is released.
			looked, release := make(chan string, 100), make(chan struct{})
			f, err := follow(interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					looked <- key.String()
					if key.Namespace == "attacker" {
						select {
						case <-release:
						case <-ctx.Done():
						}
					}
					return c.Get(ctx, key, o, opts...)
				},
			}))
			g.Expect(err).NotTo(HaveOccurred())
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Start(ctx) }()
			defer func() {
				stop()
				g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()), "it ends with its context")
			}()
			for i := range 5 {
				f.Pushed(types.NamespacedName{Namespace: "attacker", Name: fmt.Sprint(i)})
			}
			g.Eventually(looked).WithTimeout(patience.Wait).Should(Receive(Equal("attacker/0")))
			f.Pushed(types.NamespacedName{Namespace: "attacker", Name: "0"}) // while the work runs
			f.Pushed(types.NamespacedName{Namespace: "victim", Name: "web"})
			g.Eventually(looked).WithTimeout(patience.Wait).Should(Receive(Equal("victim/web")))
			g.Consistently(looked).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "one tenant has one at a time")
			close(release)
			for _, want := range []string{"1", "2", "3", "4", "0"} {
				g.Eventually(looked).WithTimeout(patience.Wait).Should(Receive(Equal("attacker/" + want)))
			}
		})
	}
}

func TestFollower_servesUsersOfHomeInTurn(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	made := func(name, creator string) *v1alpha1.Project {
		return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, Labels: map[string]string{v1alpha1.LabelCreator: creator}},
			Spec: v1alpha1.ProjectSpec{ID: 7}, Status: v1alpha1.ProjectStatus{Storage: "shard"}}
	}
	base := fake.NewClientBuilder().WithScheme(scheme).WithObjects(made("one", "7"), made("two", "7"), made("three", "8")).Build()
	engine, err := git.NewEngine(t.Context(), git.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(engine.Close)
	// Work for a project looks up its storage.
	working := make(chan fair.Key, 10)
	repos := repository.New(engine, catalog.New(interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			working <- fair.From(ctx)
			<-ctx.Done()
			return ctx.Err()
		},
	}))).WithHome("home")
	o := repository.NewObserver(repos, base)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Start(ctx) }()
	defer func() {
		stop()
		g.Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	}()
	for _, name := range []string{"one", "two"} {
		o.Pushed(types.NamespacedName{Namespace: "home", Name: name})
	}
	g.Eventually(working).WithTimeout(patience.Wait).Should(Receive(Equal(fair.User(7))))
	o.Pushed(types.NamespacedName{Namespace: "home", Name: "three"})
	g.Eventually(working).WithTimeout(patience.Wait).Should(Receive(Equal(fair.User(8))))
	g.Expect(working).To(BeEmpty(), "one user has one at a time")
}
