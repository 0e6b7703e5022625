package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func itoa(n int) string { return strconv.Itoa(n) }

func scan(text string, into ...*int) bool {
	args := make([]any, len(into))
	for i := range into {
		args[i] = into[i]
	}
	n, _ := fmt.Sscan(text, args...)
	return n == len(into)
}

func TestRepositoryPathsStayInTheStorage(t *testing.T) {
	e := newEngine(t)
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
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			storage := t.TempDir()
			r := repository(t, newEngine(t), storage, "ab/cd/1.git")
			if err := r.Check(); !errors.Is(err, git.ErrNotFound) {
				t.Errorf("before: %v", err)
			}
			if err := r.Init(t.Context(), git.InitOptions{DefaultBranch: "größe/x", ObjectFormat: format}); err != nil {
				t.Fatal(err)
			}
			if err := r.Check(); err != nil {
				t.Errorf("after: %v", err)
			}
			if h, err := r.Head(t.Context()); err != nil || h != (git.Head{Branch: "größe/x"}) {
				t.Errorf("got head %+v, %v", h, err)
			}
			if got := names(t, storage+"/ab/cd"); !slices.Equal(got, []string{"1.git"}) {
				t.Errorf("left behind: %v", got)
			}
			if hooks := filepath.Join(r.Dir(), "hooks"); exists(hooks) {
				t.Error("there are hooks from a template")
			}

			c := gittest.New(t, format)
			id := c.Commit(t, "a", "a")
			c.Git(t, "push", "--quiet", r.Dir(), "main:größe/x")
			if err := r.Init(t.Context(), git.InitOptions{DefaultBranch: "other"}); err != nil {
				t.Errorf("again: %v", err)
			}
			if h, err := r.Head(t.Context()); err != nil || h != (git.Head{Branch: "größe/x", Commit: id}) {
				t.Errorf("after a second Init: head %+v, %v", h, err)
			}
			if err := r.SetHead(t.Context(), "other"); err != nil {
				t.Error(err)
			}
			if h, err := r.Head(t.Context()); err != nil || h != (git.Head{Branch: "other"}) {
				t.Errorf("after SetHead: head %+v, %v", h, err)
			}
			if err := r.SetHead(t.Context(), "a b"); err == nil {
				t.Error("a malformed default branch is accepted")
			}
		})
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func TestInitRefusesBadOptions(t *testing.T) {
	storage := t.TempDir()
	r := repository(t, newEngine(t), storage, "1.git")
	for about, o := range map[string]git.InitOptions{
		"branch": {DefaultBranch: "--x"}, "format": {ObjectFormat: "md5"},
	} {
		if err := r.Init(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", about)
		}
	}
	if got := names(t, storage); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestInitClearsAwayWhatACrashLeft(t *testing.T) {
	storage := t.TempDir()
	for _, dir := range []string{"1.git.new/refs", "1.git.trash/123/git/objects", "1.git"} {
		if err := os.MkdirAll(filepath.Join(storage, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := repository(t, newEngine(t), storage, "1.git")
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, storage); !slices.Equal(got, []string{"1.git"}) {
		t.Errorf("left behind: %v", got)
	}
	if err := r.Fsck(t.Context(), true); err != nil {
		t.Error(err)
	}
}

func TestSomethingElseInPlaceIsNeverTouched(t *testing.T) {
	storage := t.TempDir()
	if err := os.MkdirAll(storage+"/1.git/objects", 0o755); err != nil {
		t.Fatal(err)
	}
	r := repository(t, newEngine(t), storage, "1.git")
	for about, err := range map[string]error{
		"init": r.Init(t.Context(), git.InitOptions{}), "check": r.Check(), "set head": r.SetHead(t.Context(), "x"),
	} {
		if !errors.Is(err, git.ErrNotRepository) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if _, err := r.Head(t.Context()); !errors.Is(err, git.ErrNotRepository) {
		t.Errorf("head: %v", err)
	}
	if !exists(storage + "/1.git/objects") {
		t.Error("it is gone")
	}
}

func TestAMissingStorageIsNeitherMadeNorTakenForAnEmptyOne(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "unmounted")
	r := repository(t, newEngine(t), storage, "1.git")
	_, headErr := r.Head(t.Context())
	for about, err := range map[string]error{
		"init": r.Init(t.Context(), git.InitOptions{}), "check": r.Check(), "remove": r.Remove(t.Context()), "head": headErr,
	} {
		if !errors.Is(err, git.ErrStorageMissing) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if exists(storage) {
		t.Error("the storage was made")
	}
}

// Git must not use an enclosing repository instead of a missing one.
func TestGitDoesNotLookFurtherUp(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	r := repository(t, newEngine(t), c.Dir, "inner.git")
	if _, err := r.Head(t.Context()); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := os.MkdirAll(r.Dir()+"/objects", 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.MkdirAll(r.Dir()+"/refs", 0o755)
	_ = os.WriteFile(r.Dir()+"/config", nil, 0o644)
	_ = os.WriteFile(r.Dir()+"/HEAD", []byte("nonsense"), 0o644)
	if h, err := r.Head(t.Context()); err == nil {
		t.Errorf("got %+v", h)
	}
}

func TestRemove(t *testing.T) {
	storage := t.TempDir()
	r := repository(t, newEngine(t), storage, "1.git")
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
		if got := names(t, storage); len(got) > 0 {
			t.Errorf("left behind: %v", got)
		}
	}
}

// Two processes that create the repository at once, for example when a leader is superseded, can make each other fail, but must never leave
// half a repository in place.
func TestTwoMakersAtOnce(t *testing.T) {
	for range 5 {
		storage := t.TempDir()
		r := repository(t, newEngine(t), storage, "1.git")
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
		if err := r.Fsck(t.Context(), true); err != nil {
			t.Error(err)
		}
		if h, err := r.Head(t.Context()); err != nil || h.Branch != "main" {
			t.Errorf("got %+v, %v", h, err)
		}
	}
}

// A limit on the size of files, with its signal ignored, simulates a full disk: writes fail with EFBIG.
const fullDisc = "trap '' XFSZ; ulimit -f 8"

func TestAFullDiscLeavesNothingBehind(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "big", incompressible(200<<10))
	storage := t.TempDir()
	r := repository(t, engineWith(t, fullDisc), storage, "1.git")
	err := r.Import(t.Context(), git.ImportOptions{URL: "file://" + c.Dir, AllowFile: true})
	if err == nil || !strings.Contains(err.Error(), "File too large") {
		t.Errorf("got %v", err)
	}
	if got := names(t, storage); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

func incompressible(n int) string {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}
