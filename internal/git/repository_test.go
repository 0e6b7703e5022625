package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

func TestRepository_staysInTheStorage(t *testing.T) {
	e := gittest.NewEngine(t)
	for _, c := range [][2]string{{"/s", "../a"}, {"/s", "a/../../b"}, {"/s", "/a"}, {"/s", ""}, {"/s", "."}, {"/s", "a/.."}, {"s", "a"}} {
		if r, err := e.Repository(c[0], c[1]); err == nil {
			t.Errorf("%v is accepted as %s", c, r.Dir())
		}
	}
	if r, err := e.Repository("/s/", "a/./b.git"); err != nil || r.Dir() != "/s/a/b.git" {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestInit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			storage := t.TempDir()
			r := gittest.Repository(t, gittest.NewEngine(t), storage, "ab/cd/1.git")
			if err := r.Check(); !errors.Is(err, git.ErrNotFound) {
				t.Errorf("before: %v", err)
			}
			if err := r.Init(t.Context(), git.InitOptions{DefaultBranch: "größe/x", ObjectFormat: format}); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Errorf("after: %v", err)
			}
			if h, err := refs.ReadHead(t.Context(), r); err != nil || h != (refs.Head{Branch: "größe/x"}) {
				t.Errorf("got head %+v, %v", h, err)
			}
			if got := gittest.Entries(t, storage+"/ab/cd"); !slices.Equal(got, []string{"1.git"}) {
				t.Errorf("left behind: %v", got)
			}
			if hooks := filepath.Join(r.Dir(), "hooks"); gittest.Exists(hooks) {
				t.Error("there are hooks from a template")
			}

			c := gittest.New(t, format)
			id := c.Commit(t, "a", "a")
			c.Git(t, "push", "--quiet", r.Dir(), "main:größe/x")
			if err := r.Init(t.Context(), git.InitOptions{DefaultBranch: "other"}); err != nil {
				t.Errorf("again: %v", err)
			}
			if h, err := refs.ReadHead(t.Context(), r); err != nil || h != (refs.Head{Branch: "größe/x", Commit: id}) {
				t.Errorf("after a second Init: head %+v, %v", h, err)
			}
			if err := refs.SetHead(t.Context(), r, "other"); err != nil {
				t.Error(err)
			}
			if h, err := refs.ReadHead(t.Context(), r); err != nil || h != (refs.Head{Branch: "other"}) {
				t.Errorf("after SetHead: head %+v, %v", h, err)
			}
			if err := refs.SetHead(t.Context(), r, "a b"); err == nil {
				t.Error("a malformed default branch is accepted")
			}
		})
	}
}

func TestInit_refusesInvalidOptions(t *testing.T) {
	storage := t.TempDir()
	r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
	for about, o := range map[string]git.InitOptions{
		"branch": {DefaultBranch: "--x"}, "format": {ObjectFormat: "md5"},
	} {
		if err := r.Init(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", about)
		}
	}
	if got := gittest.Entries(t, storage); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestInit_removesLeftoversOfACrash(t *testing.T) {
	storage := t.TempDir()
	for _, dir := range []string{"1.git.new/refs", "1.git.trash/123/git/objects", "1.git"} {
		if err := os.MkdirAll(filepath.Join(storage, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Entries(t, storage); !slices.Equal(got, []string{"1.git"}) {
		t.Errorf("left behind: %v", got)
	}
	if err := upkeep.Fsck(t.Context(), r, true); err != nil {
		t.Error(err)
	}
}

func TestInit_leavesOtherFilesAlone(t *testing.T) {
	storage := t.TempDir()
	if err := os.MkdirAll(storage+"/1.git/objects", 0o755); err != nil {
		t.Fatal(err)
	}
	r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
	for about, err := range map[string]error{
		"init": r.Init(t.Context(), git.InitOptions{}), "check": r.Check(), "set head": refs.SetHead(t.Context(), r, "x"),
	} {
		if !errors.Is(err, git.ErrNotRepository) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if _, err := refs.ReadHead(t.Context(), r); !errors.Is(err, git.ErrNotRepository) {
		t.Errorf("head: %v", err)
	}
	if !gittest.Exists(storage + "/1.git/objects") {
		t.Error("it is gone")
	}
}

func TestInit_doesNotCreateTheStorage(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "unmounted")
	r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
	_, headErr := refs.ReadHead(t.Context(), r)
	for about, err := range map[string]error{
		"init": r.Init(t.Context(), git.InitOptions{}), "check": r.Check(), "remove": r.Remove(t.Context()), "head": headErr,
	} {
		if !errors.Is(err, git.ErrStorageMissing) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if gittest.Exists(storage) {
		t.Error("the storage was made")
	}
}

func TestInit_writesNothingWhereNothingIsMounted(t *testing.T) {
	storage := t.TempDir()
	engine := gittest.NewEngine(t)
	made, missing := gittest.Repository(t, engine, storage, "1.git"), gittest.Repository(t, engine, storage, "2.git")
	if err := made.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*git.Repository{made, missing} {
		r.Guard(func() error { return git.ErrStorageMissing })
	}
	if err := made.Check(); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	_, stageErr := missing.Stage("a")
	for about, err := range map[string]error{
		"init": missing.Init(t.Context(), git.InitOptions{}), "check": missing.Check(), "remove": missing.Remove(t.Context()), "stage": stageErr,
		"move": made.Move(t.Context(), missing),
	} {
		if !errors.Is(err, git.ErrStorageMissing) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if got := gittest.Entries(t, storage); !slices.Equal(got, []string{"1.git"}) {
		t.Errorf("found %v", got)
	}
}

// Git must not use an enclosing repository instead of a missing one.
func TestRepository_isNotSearchedForInParents(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	r := gittest.Repository(t, gittest.NewEngine(t), c.Dir, "inner.git")
	if _, err := refs.ReadHead(t.Context(), r); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := os.MkdirAll(r.Dir()+"/objects", 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.MkdirAll(r.Dir()+"/refs", 0o755)
	_ = os.WriteFile(r.Dir()+"/config", nil, 0o644)
	_ = os.WriteFile(r.Dir()+"/HEAD", []byte("nonsense"), 0o644)
	if h, err := refs.ReadHead(t.Context(), r); err == nil {
		t.Errorf("got %+v", h)
	}
}

func TestRemove(t *testing.T) {
	storage := t.TempDir()
	r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
	if err := r.Remove(t.Context()); err != nil {
		t.Errorf("one that was never there: %v", err)
	}
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"1.git.new/refs", "1.git.trash/123/git/objects"} {
		if err := os.MkdirAll(filepath.Join(storage, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if got := gittest.Entries(t, storage); len(got) > 0 {
			t.Errorf("left behind: %v", got)
		}
	}
}

// Two processes that create the repository at once, for example when a leader is superseded, can make each other fail, but must never leave
// half a repository in place.
func TestInit_canRunConcurrently(t *testing.T) {
	for range 5 {
		storage := t.TempDir()
		r := gittest.Repository(t, gittest.NewEngine(t), storage, "1.git")
		results := make(chan error)
		for range 3 {
			go func() { results <- r.Init(t.Context(), git.InitOptions{}) }()
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Logf("one failed: %v", err)
			}
		}
		if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := upkeep.Fsck(t.Context(), r, true); err != nil {
			t.Error(err)
		}
		if h, err := refs.ReadHead(t.Context(), r); err != nil || h.Branch != "main" {
			t.Errorf("got %+v, %v", h, err)
		}
	}
}

// A limit on the size of files, with its signal ignored, simulates a full disk: writes fail with EFBIG.
const fullDisc = "trap '' XFSZ; ulimit -f 8"

func TestInit_leavesNothingOnAFullDisk(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "big", gittest.Incompressible(200<<10))
	storage := t.TempDir()
	r := gittest.Repository(t, gittest.EngineWith(t, fullDisc), storage, "1.git")
	err := transfer.Import(t.Context(), r, transfer.ImportOptions{URL: "file://" + c.Dir, AllowFile: true})
	if err == nil || !strings.Contains(err.Error(), "File too large") {
		t.Errorf("got %v", err)
	}
	if got := gittest.Entries(t, storage); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}
