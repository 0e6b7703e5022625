package git_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// counted returns an engine, and a function that returns the commands that it has started since the last call.
func counted(t *testing.T) (*git.Engine, func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	e := engineWith(t, `echo "$1" >> `+log)
	t.Cleanup(e.Close)
	since := func() []string {
		text, err := os.ReadFile(log)
		if err == nil {
			err = os.Truncate(log, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	since()
	return e, since
}

// tree returns the modes and contents of the files below a directory, by path.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := []byte(nil)
		if !entry.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		all[strings.TrimPrefix(path, dir)] = info.Mode().String() + " " + string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInit_makesTheNextOneOfAKindWithoutAProcess(t *testing.T) {
	e, started := counted(t)
	storages := []string{t.TempDir(), t.TempDir()}
	for _, format := range formats {
		for _, storage := range storages {
			for n, want := range [][]string{{"init"}, nil, nil} {
				branch := "branch-" + itoa(n)
				r := repository(t, e, storage, "a/"+format+"-"+itoa(n)+".git")
				if err := r.Init(t.Context(), git.InitOptions{DefaultBranch: branch, ObjectFormat: format}); err != nil {
					t.Fatal(err)
				}
				if got := started(); !slices.Equal(got, want) {
					t.Errorf("%s, repository %d: %v was started, want %v", format, n, got, want)
				}
				own := filepath.Join(t.TempDir(), "own.git")
				c := gittest.New(t, format)
				c.Git(t, "init", "--quiet", "--bare", "--template=", "--object-format="+format, "--initial-branch="+branch, own)
				if got, want := tree(t, r.Dir()), tree(t, own); !maps.Equal(got, want) {
					t.Errorf("%s, repository %d is\n%q, and git makes\n%q", format, n, got, want)
				}
				id := c.Commit(t, "a", "a")
				c.Git(t, "push", "--quiet", r.Dir(), "HEAD:refs/heads/"+branch)
				if h, err := r.Head(t.Context()); err != nil || h != (git.Head{Branch: branch, Commit: id}) {
					t.Errorf("%s, repository %d: head %+v, %v", format, n, h, err)
				}
				if err := r.Fsck(t.Context(), true); err != nil {
					t.Error(err)
				}
				started()
			}
		}
	}
}

func TestRepositoryWithoutRefs_isReadWithoutAProcess(t *testing.T) {
	e, started := counted(t)
	r := repository(t, e, t.TempDir(), "1.git")
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	started()
	read := func() (refs []string) {
		t.Helper()
		if h, err := r.Head(t.Context()); err != nil || h.Branch != "main" {
			t.Errorf("head %+v, %v", h, err)
		}
		for ref, err := range r.Refs(t.Context(), "refs/heads/", "refs/tags/") {
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref.Name)
		}
		return refs
	}
	if refs := read(); len(refs) > 0 {
		t.Errorf("refs %v", refs)
	}
	if got := started(); len(got) > 0 {
		t.Errorf("%v was started", got)
	}
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	c.Git(t, "push", "--quiet", r.Dir(), "HEAD:refs/tags/a/b")
	if refs := read(); !slices.Equal(refs, []string{"refs/tags/a/b"}) {
		t.Errorf("refs %v", refs)
	}
	(&gittest.Client{Dir: r.Dir()}).Git(t, "pack-refs", "--all", "--prune")
	if refs := read(); !slices.Equal(refs, []string{"refs/tags/a/b"}) {
		t.Errorf("packed refs %v", refs)
	}
}

func TestReadLayout_refusesHalfARepository(t *testing.T) {
	for _, gone := range []string{"config", "objects/info", "objects/pack", "refs/heads", "refs/tags", ""} {
		r := repository(t, newEngine(t), t.TempDir(), "1.git")
		if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := git.ReadLayout(r.Dir()); err != nil {
			t.Fatal(err)
		}
		if gone == "" { // removes everything
			if err := os.RemoveAll(r.Dir()); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(r.Dir(), 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(filepath.Join(r.Dir(), gone)); err != nil {
			t.Fatal(err)
		}
		if err := git.ReadLayout(r.Dir()); !errors.Is(err, git.ErrNotRepository) {
			t.Errorf("without %q: got %v", gone, err)
		}
	}
}
