package repository_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// shop is a project on its own shard, and a git client that works on it.
type shop struct {
	project *v1alpha1.Project
	repos   *repository.Repositories
	git     *git.Repository
	client  *gittest.Client
}

func newShop(t *testing.T, format string, more ...client.Object) *shop {
	t.Helper()
	g := NewWithT(t)
	storage := shardAt(t.TempDir(), "shard", "shard")
	g.Expect(repository.Mark(storage, false)).To(Succeed())
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "web", UID: "web"}, Spec: v1alpha1.ProjectSpec{ID: 7, Path: "web"}}
	p.Status.Storage = "shard"
	engine, err := git.NewEngine(t.Context(), git.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	s := &shop{
		project: p, repos: repository.New(engine, catalogtest.New(t, append(more, storage)...).Catalog()), client: gittest.New(t, format),
	}
	s.git, err = s.repos.Of(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.git.Dir()).To(Equal(filepath.Join(storage.Spec.Path, repository.Path(p))))
	g.Expect(s.git.Init(t.Context(), git.InitOptions{ObjectFormat: format})).To(Succeed())
	return s
}

func (s *shop) push(t *testing.T, args ...string) {
	t.Helper()
	s.client.Git(t, append([]string{"push", "--quiet", s.git.Dir()}, args...)...)
}

func (s *shop) observe(t *testing.T) v1alpha1.ProjectStatus {
	t.Helper()
	NewWithT(t).Expect(s.repos.Observe(t.Context(), s.project)).To(Succeed())
	return s.project.Status
}

// shards are in the cache by their names.
type shards map[string]*v1alpha1.RepositoryStorage

func (shards) ByIndex(string, string, string) ([]any, bool) { return nil, false }

func (s shards) ByName(_ string, name types.NamespacedName) (any, bool) { return s[name.Name], true }

func TestOf_followsShardAndID(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	cached := shards{"shard": shardAt(t.TempDir(), "shard", "shard")}
	cat := catalogtest.New(t).Catalog()
	cat.LookUpIn(cached)
	repos := repository.New(s.git.Engine(), cat)
	of := func(p *v1alpha1.Project) *git.Repository {
		repo, err := repos.Of(t.Context(), p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(repo.Dir()).To(Equal(filepath.Join(cached["shard"].Spec.Path, repository.Path(p))))
		return repo
	}
	first := of(s.project)
	g.Expect(of(s.project.DeepCopy())).To(BeIdenticalTo(first), "Empty does not look for branches again")
	cached["shard"] = shardAt(t.TempDir(), "shard", "shard")
	g.Expect(of(s.project)).NotTo(BeIdenticalTo(first))
	renumbered := s.project.DeepCopy()
	renumbered.Spec.ID = 8
	of(renumbered)
}

func TestPath_dependsOnNamespaceNameAndID(t *testing.T) {
	g := NewWithT(t)
	of := func(namespace, name string, id int64) string {
		return repository.Path(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ProjectSpec{ID: id}})
	}
	g.Expect(of("acme", "web", 7)).To(Equal("52/48/5248438b7ed6d34633f5ce3de67a0ddb2c75cec722aebe46582f40974882a347.git"),
		"another rule would lose every repository that there is")
	g.Expect(of("acme", "other", 7)).NotTo(Equal(of("acme", "web", 7)), "a pinned id does not reach another project")
	g.Expect(of("acme", "web", 8)).NotTo(Equal(of("acme", "web", 7)))
	g.Expect(of("bolt", "web", 7)).NotTo(Equal(of("acme", "web", 7)), "a pinned id does not reach another namespace")
}

func TestPaths_areOfCodeWikiAndDesigns(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	stem := strings.TrimSuffix(repository.Path(s.project), ".git")
	g.Expect(repository.Paths(s.project)).To(Equal([]string{stem + ".git", stem + ".wiki.git", stem + ".design.git"}))
	all, err := s.repos.All(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveExactElements(
		HaveField("Dir()", HaveSuffix(stem+".git")), HaveField("Dir()", HaveSuffix(stem+".wiki.git")), HaveField("Dir()", HaveSuffix(stem+".design.git")),
	))
	s.project.Status.Storage = ""
	_, err = s.repos.All(t.Context(), s.project)
	g.Expect(err).To(MatchError(repository.ErrNoStorage))
}

func TestOf_findsRepositoryIfReplaceRemovedID(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	path := repository.Path(s.project)
	dropped := s.project.DeepCopy()
	dropped.Spec.ID, dropped.Status.ID = 0, s.project.Spec.ID
	g.Expect(repository.Path(dropped)).To(Equal(path))
	repo, err := s.repos.Of(t.Context(), dropped)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repo.Check()).To(Succeed())
	g.Expect(repository.NewRetained(dropped, "u", "", time.Now()).Spec.Project.ID).To(Equal(s.project.Spec.ID))
}

func TestOf_reportsMissingStorage(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	s.project.Status.Storage = ""
	_, err := s.repos.Of(t.Context(), s.project)
	g.Expect(err).To(MatchError(repository.ErrNoStorage))
	s.project.Status.Storage, s.project.Spec.ID = "shard", 0
	_, err = s.repos.Of(t.Context(), s.project)
	g.Expect(err).To(MatchError(repository.ErrNoStorage))
	s.project.Status.Storage, s.project.Spec.ID = "gone", 7
	_, err = s.repos.Of(t.Context(), s.project)
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
}

func TestObserve(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			s := newShop(t, format)
			empty := s.observe(t)
			g.Expect(empty.DefaultBranch).To(Equal("main"))
			g.Expect(empty.HeadCommit).To(BeEmpty())
			g.Expect(empty.RefsChecksum).To(HaveLen(64))
			g.Expect(empty.SizeBytes).To(BeNumerically(">", 0))
			g.Expect(empty.LastActivityTime).To(BeNil())
			g.Expect(empty.RepositoryPath).To(Equal(repository.Path(s.project)))
			g.Expect(s.observe(t)).To(Equal(empty), "looking changes nothing")

			commit := s.client.Commit(t, "README", "hello")
			s.push(t, "main")
			pushed := s.observe(t)
			g.Expect(pushed.HeadCommit).To(Equal(commit))
			g.Expect(pushed.LastActivityTime.Time).To(BeTemporally("~", time.Now(), time.Minute))
			g.Expect(s.observe(t)).To(Equal(pushed), "only a change is an activity")
			g.Expect(pushed.RefsChecksum).NotTo(Equal(empty.RefsChecksum))
			g.Expect(pushed.SizeBytes).To(BeNumerically(">", empty.SizeBytes))

			s.push(t, "main:refs/tags/v1")
			tagged := s.observe(t)
			g.Expect(tagged.RefsChecksum).NotTo(Equal(pushed.RefsChecksum))
			s.push(t, "main:refs/notes/x")
			g.Expect(s.observe(t).RefsChecksum).To(Equal(tagged.RefsChecksum), "only branches and tags count")
			s.push(t, ":refs/tags/v1")
			g.Expect(s.observe(t).RefsChecksum).To(Equal(pushed.RefsChecksum), "the same refs have the same checksum")

			g.Expect(refs.SetHead(t.Context(), s.git, "next")).To(Succeed())
			moved := s.observe(t)
			g.Expect(moved.DefaultBranch).To(Equal("next"))
			g.Expect(moved.HeadCommit).To(BeEmpty())
		})
	}
}

func TestFilled_dependsOnObservedRefs(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	g.Expect(repository.Filled(s.project)).To(BeFalse(), "nobody has looked")
	s.project.Status.AdoptedRepository = "left"
	g.Expect(repository.Filled(s.project)).To(BeTrue(), "nobody has looked at what another project had")
	s.observe(t)
	g.Expect(repository.Filled(s.project)).To(BeFalse())
	s.client.Commit(t, "README", "hello")
	s.push(t, "main:refs/tags/v1")
	s.observe(t)
	g.Expect(repository.Filled(s.project)).To(BeTrue())
}

func TestEmpty_readsCurrentRefs(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	s.observe(t)
	g.Expect(s.repos.Empty(t.Context(), s.project)).To(BeTrue())
	s.client.Commit(t, "README", "hello")
	s.push(t, "main")
	g.Expect(s.repos.Empty(t.Context(), s.project)).To(BeFalse(), "nobody has observed the push yet")
	s.observe(t)
	g.Expect(refs.SetHead(t.Context(), s.git, "next")).To(Succeed())
	s.push(t, ":main")
	g.Expect(s.project.Status.HeadCommit).NotTo(BeEmpty())
	g.Expect(s.repos.Empty(t.Context(), s.project)).To(BeTrue(), "nobody has observed the removal yet")
	g.Expect(os.Rename(s.git.Dir(), s.git.Dir()+".away")).To(Succeed())
	g.Expect(s.repos.Empty(t.Context(), s.project)).To(BeFalse(), "nothing else is known than what was observed")
}

func TestObserve_keepsStatusOnError(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	before := s.observe(t)
	g.Expect(os.RemoveAll(s.git.Dir())).To(Succeed())
	g.Expect(s.repos.Observe(t.Context(), s.project)).To(MatchError(git.ErrNotFound))
	g.Expect(s.project.Status).To(Equal(before))
}

func TestBranches(t *testing.T) {
	g := NewWithT(t)
	s := newShop(t, "sha1")
	names, err := s.repos.Branches(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(BeEmpty(), "nobody has looked yet")

	s.client.Commit(t, "README", "hello")
	s.push(t, "main", "main:refs/heads/release/1.0", "main:refs/heads/a-first", "main:refs/tags/v1")
	s.observe(t)
	names, err = s.repos.Branches(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(Equal([]string{"a-first", "main", "release/1.0"}))

	s.push(t, "main:refs/heads/z-last")
	again, err := s.repos.Branches(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(names), "what was not observed was not read")
	g.Expect(&again[0]).To(BeIdenticalTo(&names[0]), "the list is kept, not read again")

	s.observe(t)
	names, err = s.repos.Branches(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(ContainElement("z-last"))

	g.Expect(os.RemoveAll(s.git.Dir())).To(Succeed())
	s.project.Status.RefsChecksum = "another"
	_, err = s.repos.Branches(t.Context(), s.project)
	g.Expect(err).To(MatchError(git.ErrNotFound))
}
