package git_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// counted returns an engine, and a function that returns the commands that it has started since the last call.
func counted(t *testing.T) (*git.Engine, func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	e := gittest.EngineWith(t, `echo "$1" >> `+log)
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
	for _, format := range gittest.Formats {
		for _, storage := range storages {
			for n, want := range [][]string{{"init"}, nil, nil} {
				branch := "branch-" + strconv.Itoa(n)
				r := gittest.Repository(t, e, storage, "a/"+format+"-"+strconv.Itoa(n)+".git")
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
				if h, err := refs.ReadHead(t.Context(), r); err != nil || h != (refs.Head{Branch: branch, Commit: id}) {
					t.Errorf("%s, repository %d: head %+v, %v", format, n, h, err)
				}
				if err := upkeep.Fsck(t.Context(), r, true); err != nil {
					t.Error(err)
				}
				started()
			}
		}
	}
}

func TestRepositoryWithoutRefs_isReadWithoutAProcess(t *testing.T) {
	e, started := counted(t)
	r := gittest.Repository(t, e, t.TempDir(), "1.git")
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	started()
	read := func() (listed []string) {
		t.Helper()
		if h, err := refs.ReadHead(t.Context(), r); err != nil || h.Branch != "main" {
			t.Errorf("head %+v, %v", h, err)
		}
		for ref, err := range refs.List(t.Context(), r, "refs/heads/", "refs/tags/") {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, ref.Name)
		}
		return listed
	}
	if listed := read(); len(listed) > 0 {
		t.Errorf("refs %v", listed)
	}
	if got := started(); len(got) > 0 {
		t.Errorf("%v was started", got)
	}
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	c.Git(t, "push", "--quiet", r.Dir(), "HEAD:refs/tags/a/b")
	if listed := read(); !slices.Equal(listed, []string{"refs/tags/a/b"}) {
		t.Errorf("refs %v", listed)
	}
	(&gittest.Client{Dir: r.Dir()}).Git(t, "pack-refs", "--all", "--prune")
	if listed := read(); !slices.Equal(listed, []string{"refs/tags/a/b"}) {
		t.Errorf("packed refs %v", listed)
	}
}

func TestReadLayout_refusesHalfARepository(t *testing.T) {
	for _, gone := range []string{"config", "objects/info", "objects/pack", "refs/heads", "refs/tags", ""} {
		r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "1.git")
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
