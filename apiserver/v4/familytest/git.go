package familytest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// Shard returns a shard and assigns the projects to it.
func Shard(t testing.TB, projects ...*v1alpha1.Project) *v1alpha1.RepositoryStorage {
	t.Helper()
	s := &v1alpha1.RepositoryStorage{
		ObjectMeta: metav1.ObjectMeta{Name: "shard"}, Spec: v1alpha1.RepositoryStorageSpec{Path: t.TempDir()},
	}
	for _, p := range projects {
		p.Status.Storage = s.Name
	}
	return s
}

// Repositories returns the repositories of projects. They can be used until the test ends.
func Repositories(t testing.TB, cat *catalog.Catalog) *repository.Repositories {
	t.Helper()
	return Limited(t, cat, git.Options{})
}

// Limited is Repositories with options for Git, such as limits.
func Limited(t testing.TB, cat *catalog.Catalog, o git.Options) *repository.Repositories {
	t.Helper()
	engine, err := git.NewEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return repository.New(engine, cat)
}

// Init creates an empty repository for a project.
func Init(t testing.TB, repos *repository.Repositories, p *v1alpha1.Project, objectFormat string) *git.Repository {
	t.Helper()
	r, err := repos.Of(t.Context(), p)
	if err == nil {
		err = r.Init(t.Context(), git.InitOptions{ObjectFormat: objectFormat})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Push creates the repository of a project with all objects and refs of a client. It copies files instead of starting git, which would take
// most of the time of many tests.
func Push(t testing.TB, repos *repository.Repositories, p *v1alpha1.Project, c *gittest.Client) *git.Repository {
	t.Helper()
	r := Init(t, repos, p, c.Git(t, "rev-parse", "--show-object-format"))
	from := os.DirFS(filepath.Join(c.Dir, ".git"))
	for _, part := range []string{"objects", "refs"} {
		files, err := fs.Sub(from, part)
		if err == nil {
			err = os.CopyFS(filepath.Join(r.Dir(), part), files)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	packed, err := fs.ReadFile(from, "packed-refs")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir(), "packed-refs"), packed, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return r
}

// Keep makes the families of the forge use repositories.
func (f *Forge) Keep(repos *repository.Repositories) {
	f.Repositories = repos
	f.Refs = ref.NewUpdater(f.Guard, repos, func(change.Event) {})
}
