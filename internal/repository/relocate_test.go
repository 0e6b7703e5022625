package repository_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// relocatable returns the handles on a project's repositories on its shard, and on another one.
func relocatable(t *testing.T) (s *shop, from, to *repository.Handle, lines *audittest.Lines) {
	t.Helper()
	g := NewWithT(t)
	other := &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.RepositoryStorageSpec{Path: t.TempDir()}}
	s, lines = newShop(t, "sha1", other), audittest.Open(t)
	audited := s.repos.Audited(lines.Log)
	var err error
	from, err = audited.At(t.Context(), s.project, s.project.Status.Storage)
	g.Expect(err).NotTo(HaveOccurred())
	to, err = audited.At(t.Context(), s.project, "other")
	g.Expect(err).NotTo(HaveOccurred())
	return s, from, to, lines
}

// all returns the repositories of a project on a shard.
func all(t *testing.T, s *shop, storage string) []*git.Repository {
	t.Helper()
	p := s.project.DeepCopy()
	p.Status.Storage = storage
	repos, err := s.repos.All(t.Context(), p)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return repos
}

func TestHandle_relocatesAllRepositories(t *testing.T) {
	g := NewWithT(t)
	s, from, to, lines := relocatable(t)
	for _, repo := range all(t, s, s.project.Status.Storage) {
		g.Expect(repo.Init(t.Context(), git.InitOptions{})).To(Succeed())
	}
	o := relocate.Options{By: "one", Switch: func(context.Context) error { return nil }}
	g.Expect(from.Relocate(t.Context(), to, o)).To(Succeed())
	for _, repo := range all(t, s, "other") {
		g.Expect(repo.Check()).To(Succeed())
	}
	g.Expect(from.RemoveRetired(t.Context(), "two")).NotTo(Succeed(), "it is retired by another name")
	for range 2 {
		g.Expect(from.RemoveRetired(t.Context(), "one")).To(Succeed())
	}
	for _, repo := range all(t, s, s.project.Status.Storage) {
		g.Expect(repo.Check()).To(MatchError(git.ErrNotFound))
	}
	g.Expect(lines.Events()).To(HaveExactElements(
		And(HaveField("Action", "relocate"), HaveField("Result", audit.Done)),
		And(HaveField("Action", "destroy"), HaveField("Result", audit.Done)),
	))
}

func TestFollow_endsReadersOfFormerShard(t *testing.T) {
	g := NewWithT(t)
	s, from, to, _ := relocatable(t)
	s.client.Commit(t, "a", "1")
	s.push(t, "main")
	for _, repo := range all(t, s, "shard")[1:] {
		g.Expect(repo.Init(t.Context(), git.InitOptions{})).To(Succeed())
	}
	shard := func(name string) *v1alpha1.RepositoryStorage {
		path := strings.TrimSuffix(all(t, s, name)[0].Dir(), repository.Path(s.project))
		return &v1alpha1.RepositoryStorage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositoryStorageSpec{Path: path}}
	}
	// Another process keeps its readers.
	engine, err := git.NewEngine(t.Context(), git.Options{ReaderIdle: time.Hour})
	g.Expect(err).NotTo(HaveOccurred())
	f := &followed{World: catalogtest.New(t, shard("shard"), shard("other"))}
	f.repos = repository.New(engine, f.Catalog())
	g.Expect(f.repos.Follow(t.Context(), f)).To(Succeed())
	read, err := f.repos.Of(t.Context(), s.project)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Objects(t.Context(), "main")).To(HaveExactElements(HaveField("ID", Not(BeEmpty()))))

	g.Expect(from.Relocate(t.Context(), to, relocate.Options{By: "one", Switch: func(context.Context) error { return nil }})).To(Succeed())
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	g.Expect(from.RemoveRetired(soon, "one")).To(MatchError(context.DeadlineExceeded), "the reader is still there")
	moved := s.project.DeepCopy()
	moved.Status.Storage = "other"
	f.told.OnUpdate(s.project, moved)
	g.Expect(from.RemoveRetired(t.Context(), "one")).To(Succeed())
}

func TestHandle_undoesARelocation(t *testing.T) {
	g := NewWithT(t)
	s, from, to, lines := relocatable(t)
	o := relocate.Options{By: "one", Switch: func(context.Context) error { return relocate.ErrUndecided }}
	g.Expect(from.Relocate(t.Context(), to, o)).To(MatchError(relocate.ErrUndecided))
	g.Expect(s.git.RetiredBy()).To(Equal("one"))
	no := errors.New("it lives there")
	g.Expect(from.Undo(t.Context(), to, func(context.Context) error { return no })).To(MatchError(no))
	g.Expect(s.git.RetiredBy()).To(Equal("one"))
	g.Expect(from.Undo(t.Context(), to, func(context.Context) error { return nil })).To(Succeed())
	g.Expect(s.git.RetiredBy()).To(BeEmpty())
	for _, repo := range all(t, s, "other") {
		g.Expect(repo.Check()).To(MatchError(git.ErrNotFound))
	}
	g.Expect(lines.Events()).To(HaveExactElements(And(HaveField("Action", "relocate"), HaveField("Result", audit.Failed))))
}

func TestAt_namesTheShard(t *testing.T) {
	g := NewWithT(t)
	s, lines := newShop(t, "sha1"), audittest.Open(t)
	audited := s.repos.Audited(lines.Log)
	_, err := audited.At(t.Context(), s.project, "nowhere")
	g.Expect(err).To(MatchError(catalog.ErrNotFound))
	unborn := s.project.DeepCopy()
	unborn.Spec.ID, unborn.Status.ID = 0, 0
	_, err = audited.At(t.Context(), unborn, s.project.Status.Storage)
	g.Expect(err).To(MatchError(repository.ErrNoStorage))
}
