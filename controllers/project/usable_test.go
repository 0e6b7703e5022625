package project_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/project"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/internal/index"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// TestARepositoryIsThereWhenItsDefaultBranchIsProtected creates a project again while the protection of the earlier project with its name
// is in the way of its own.
func TestARepositoryIsThereWhenItsDefaultBranchIsProtected(t *testing.T) {
	g := NewWithT(t)
	of := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "acme", Name: name, UID: types.UID("uid of " + name)}
	}
	acme := &v1alpha1.Group{ObjectMeta: of("acme"), Spec: v1alpha1.GroupSpec{ID: 1, Path: "acme"}}
	acme.Status.ID, acme.Status.FullPath, acme.Status.Claims = 1, "acme", []string{claim.Path("", "acme").String()}
	web := &v1alpha1.Project{ObjectMeta: of("web"), Spec: v1alpha1.ProjectSpec{ID: 2, Path: "web", GroupRef: v1alpha1.Reference{Name: "acme"}}}
	web.Status.Storage = "shard"
	left := &v1alpha1.ProtectedBranch{ObjectMeta: of(naturalkey.Name("web", "main")), Spec: v1alpha1.ProtectedBranchSpec{
		ID: 3, Branch: "main", ProjectRef: &v1alpha1.Reference{Name: "web"},
	}}
	left.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "web", UID: "former"}}
	shard := &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "shard"}, Spec: v1alpha1.RepositoryStorageSpec{Path: t.TempDir()}}
	c := declared(t, acme, web, left, shard,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}})

	cat, engine := catalog.New(c), newEngine(t)
	repos, clock := repository.New(engine, cat), clocktesting.NewFakePassiveClock(time.Now())
	allocator := ids.New(c, c, c, "platform", ids.Range{First: 10})
	base := frame.Base{Client: c, Events: events.NewFakeRecorder(100), Catalog: cat, IDs: allocator}
	controller := project.New(base, allocator, repos.Audited(nil), project.Options{Secrets: c, Live: c, Clock: clock})
	reconcile := func() (reason string) {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web), web)).To(Succeed())
		_, err := controller.Reconcile(t.Context(), web.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web), web)).To(Succeed())
		ready := meta.FindStatusCondition(web.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		t.Log(ready.Reason, ready.Message)
		return ready.Reason
	}

	g.Expect(reconcile()).To(Equal(v1alpha1.ReasonProgressing))
	repo, err := repos.Of(t.Context(), web)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repo.Check()).To(MatchError(git.ErrNotFound))
	g.Expect(web.Status.RefsChecksum).To(BeEmpty())

	g.Expect(c.Delete(t.Context(), left)).To(Succeed())
	g.Expect(reconcile()).To(Equal(v1alpha1.ReasonReady))
	g.Expect(repo.Check()).To(Succeed())
	g.Expect(web.Status.RefsChecksum).NotTo(BeEmpty())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(left), left)).To(Succeed())
	g.Expect(metav1.IsControlledBy(left, web)).To(BeTrue())
}

func newEngine(t *testing.T) *git.Engine {
	t.Helper()
	engine, err := git.NewEngine(t.Context(), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return engine
}

// declared returns a client of an API server with the objects, with the indexes of the catalog.
func declared(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Project{}, &v1alpha1.ProtectedBranch{}, &v1alpha1.Group{})
	for _, add := range []func(context.Context, client.FieldIndexer) error{index.Add, index.AddForManagers} {
		if err := add(t.Context(), indexer{builder}); err != nil {
			t.Fatal(err)
		}
	}
	return builder.Build()
}

// indexer registers indexes with a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)
	return nil
}
