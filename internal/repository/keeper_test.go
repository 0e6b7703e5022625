package repository_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
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

// kept runs a keeper on a shop until the test ends.
type kept struct {
	*shop
	keeper  *repository.Keeper
	metrics *prometheus.Registry
}

func keep(t *testing.T, l repository.Limits) *kept {
	t.Helper()
	g := NewWithT(t)
	k := &kept{shop: newShop(t, "sha1"), metrics: prometheus.NewRegistry()}
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(k.project).WithStatusSubresource(k.project).Build()
	var err error
	k.keeper, err = repository.NewKeeper(k.repos, c, l, k.metrics)
	g.Expect(err).NotTo(HaveOccurred())
	start(t, k.keeper)
	return k
}

func start(t *testing.T, k *repository.Keeper) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(patience.Wait).Should(Receive(BeNil()), "the keeper ends with its context")
	})
}

func (k *kept) pushed(t *testing.T) {
	t.Helper()
	k.shop.client.Commit(t, "README", time.Now().String())
	k.push(t, "main")
	k.keeper.Pushed(client.ObjectKeyFromObject(k.project))
}

// runs returns a function that counts the maintenance runs of the repository by result.
func (k *kept) runs(t *testing.T) func() map[string]int {
	return func() map[string]int {
		g := NewWithT(t)
		families, err := k.metrics.Gather()
		g.Expect(err).NotTo(HaveOccurred())
		counts := map[string]int{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] += int(m.GetHistogram().GetSampleCount())
			}
		}
		return counts
	}
}

func TestKeeper_combinesFrequentPushes(t *testing.T) {
	g := NewWithT(t)
	k := keep(t, repository.Limits{Concurrency: 2, Timeout: time.Minute, Delay: time.Second})
	for range 3 {
		k.keeper.Pushed(client.ObjectKeyFromObject(k.project))
	}
	k.keeper.Pushed(types.NamespacedName{Namespace: "acme", Name: "gone"})
	k.pushed(t)
	g.Eventually(func() ([]string, error) {
		return filepath.Glob(filepath.Join(k.git.Dir(), "objects/info/commit-graphs/*.graph"))
	}).WithTimeout(patience.Wait).ShouldNot(BeEmpty())
	before := k.runs(t)()["done"]
	k.pushed(t)
	g.Eventually(k.runs(t)).WithTimeout(patience.Wait).Should(HaveKeyWithValue("done", before+1))
	g.Expect(before).To(BeNumerically("<=", 2))
}

func TestKeeper_skipsClosedRepositories(t *testing.T) {
	g := NewWithT(t)
	k := keep(t, repository.Limits{Concurrency: 1, Timeout: time.Minute})
	open, err := k.git.Close(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	k.pushed(t)
	g.Consistently(k.runs(t)).WithTimeout(500 * time.Millisecond).Should(BeEmpty())
	open()
	k.pushed(t)
	g.Eventually(k.runs(t)).WithTimeout(patience.Wait).Should(HaveKey("done"))
}

func TestKeeper_worksForTenant(t *testing.T) {
	g := NewWithT(t)
	s, who := newShop(t, "sha1"), make(chan fair.Key, 10)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	base := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.project).WithStatusSubresource(s.project).Build()
	// Finding the repository looks up the storage.
	cat := catalog.New(interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			who <- fair.From(ctx)
			return errors.New("the API server is not there")
		},
	}))
	engine, err := git.NewEngine(t.Context(), git.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	k, err := repository.NewKeeper(repository.New(engine, cat), base, repository.Limits{Concurrency: 1, Timeout: time.Minute}, prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	start(t, k)
	k.Pushed(client.ObjectKeyFromObject(s.project))
	g.Eventually(who).WithTimeout(patience.Wait).Should(Receive(Equal(fair.Namespace("acme"))))
}

func TestKeeper_maintainsAtOnceOnRequest(t *testing.T) {
	g := NewWithT(t)
	k := keep(t, repository.Limits{Concurrency: 1, Timeout: time.Minute, Delay: time.Hour})
	k.pushed(t)
	g.Expect(k.keeper.Ask(client.ObjectKeyFromObject(k.project))).To(BeTrue())
	g.Eventually(k.runs(t)).WithTimeout(patience.Wait).Should(Equal(map[string]int{"done": 1}))
}

func TestKeeper_canBeDisabled(t *testing.T) {
	k := keep(t, repository.Limits{Timeout: time.Minute})
	k.pushed(t)
	NewWithT(t).Expect(k.runs(t)()).To(BeEmpty())
}

func TestKeeper_countsFailures(t *testing.T) {
	g := NewWithT(t)
	k := keep(t, repository.Limits{Concurrency: 1, Timeout: time.Nanosecond})
	k.pushed(t)
	g.Eventually(k.runs(t)).WithTimeout(patience.Wait).Should(HaveKey("failed"))
}

func TestKeeper_ignoresDeletedRepositories(t *testing.T) {
	g := NewWithT(t)
	k := keep(t, repository.Limits{Concurrency: 1, Timeout: time.Minute})
	g.Expect(k.git.Remove(t.Context())).To(Succeed())
	k.keeper.Pushed(client.ObjectKeyFromObject(k.project))
	g.Consistently(k.runs(t)).WithTimeout(500 * time.Millisecond).Should(BeEmpty())
	g.Expect(k.git.Dir()).NotTo(BeADirectory())
	g.Expect(k.git.Init(t.Context(), git.InitOptions{})).To(Succeed())
	k.pushed(t)
	g.Eventually(k.runs(t)).WithTimeout(patience.Wait).Should(Equal(map[string]int{"done": 1}))
}
