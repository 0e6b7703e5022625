package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// Names that have caused problems in other programs.
var weird = []string{
	"a b", "new\nline", "tab\t", "-dash", "--option", "quote\"'", "back\\slash", "\x01\x7f", "ä", "\xff\xfe", "semi;$(x)",
	":colon", "*", "[a]", "#", "dir with/..dots../x", "C:",
}

func TestWeirdPaths(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			first := c.Commit(t, "start", "0")
			for _, path := range weird {
				c.Commit(t, path, "content of "+path)
			}
			last := c.Git(t, "rev-parse", "HEAD")
			r := gittest.Bare(t, c)

			want := slices.Sorted(slices.Values(weird))
			got, err := history.ChangedPaths(t.Context(), r, first, last, 1<<20, nil)
			if err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			if all, err := history.ChangedPaths(t.Context(), r, "", last, 1<<20, nil); err != nil || len(all) != len(weird)+1 {
				t.Errorf("from nothing: got %q, %v", all, err)
			}
			if none, err := history.ChangedPaths(t.Context(), r, last, last, 1<<20, nil); err != nil || len(none) != 0 {
				t.Errorf("to itself: got %q, %v", none, err)
			}
			if _, err := history.ChangedPaths(t.Context(), r, first, last, 20, nil); !errors.Is(err, process.ErrOutputTooLarge) {
				t.Errorf("past the limit: %v", err)
			}
			for _, path := range weird {
				if text, err := snapshot.ReadFile(t.Context(), r, last, path, 100); err != nil || string(text) != "content of "+path {
					t.Errorf("%q: got %q, %v", path, text, err)
				}
				if _, err := snapshot.ReadFile(t.Context(), r, first, path, 100); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%q before it was there: %v", path, err)
				}
			}
		})
	}
}

func TestChangedPaths_haveBothNamesOfARename(t *testing.T) {
	c := gittest.New(t, "sha1")
	before := c.Commit(t, "old", strings.Repeat("same\n", 100))
	c.Git(t, "mv", "old", "new")
	c.Git(t, "commit", "--quiet", "-m", "Rename")
	got, err := history.ChangedPaths(t.Context(), gittest.Bare(t, c), before, c.Git(t, "rev-parse", "HEAD"), 100, nil)
	if err != nil || !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadFile(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "empty", "")
	c.Commit(t, "dir/file", "x")
	if err := os.Symlink("dir/file", c.Dir+"/link"); err != nil {
		t.Fatal(err)
	}
	c.Commit(t, "ten", "0123456789")
	c.Git(t, "add", "link")
	for path, id := range map[string]string{"module": c.Git(t, "rev-parse", "HEAD"), "module-elsewhere": strings.Repeat("1", 40)} {
		c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+id+","+path)
	}
	c.Git(t, "commit", "--quiet", "-m", "Link")
	id := c.Git(t, "rev-parse", "HEAD")
	r := gittest.Bare(t, c)
	for _, x := range []struct {
		path  string
		limit int
		text  string
		err   error
	}{
		{"empty", 0, "", nil},
		{"ten", 10, "0123456789", nil},
		{"ten", 9, "", git.ErrFileTooLarge},
		{"link", 100, "dir/file", nil},
		{"dir", 100, "", fs.ErrNotExist},
		{"dir", 1, "", fs.ErrNotExist},
		{"module", 100, "", fs.ErrNotExist},
		{"module-elsewhere", 100, "", fs.ErrNotExist},
		{strings.Repeat("dir/", 5000) + "file", 100, "", fs.ErrNotExist},
		{"dir/file/x", 100, "", fs.ErrNotExist},
		{"absent", 100, "", fs.ErrNotExist},
		{"", 100, "", fs.ErrInvalid},
		{".", 100, "", fs.ErrInvalid},
		{"../x", 100, "", fs.ErrInvalid},
		{"/ten", 100, "", fs.ErrInvalid},
		{"ten\x00", 100, "", fs.ErrInvalid},
	} {
		if text, err := snapshot.ReadFile(t.Context(), r, id, x.path, x.limit); string(text) != x.text || !errors.Is(err, x.err) {
			t.Errorf("%.99q up to %d: got %q, %.99v", x.path, x.limit, text, err)
		}
	}
	for _, id := range []string{"HEAD", "", "--help", strings.Repeat("g", 40), "main:ten"} {
		if _, err := snapshot.ReadFile(t.Context(), r, id, "ten", 100); err == nil {
			t.Errorf("%q is taken for an id", id)
		}
	}
	c.Commit(t, "big", gittest.Incompressible(300<<10))
	big := gittest.Bare(t, c)
	if _, err := snapshot.ReadFile(t.Context(), big, c.Git(t, "rev-parse", "HEAD"), "big", 1000); !errors.Is(err, git.ErrFileTooLarge) {
		t.Errorf("big: %v", err)
	}
}

func TestAncestry(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			a := c.Commit(t, "a", "1")
			b := c.Commit(t, "a", "2")
			c.Git(t, "checkout", "--quiet", "-b", "side", a)
			d := c.Commit(t, "a", "3")
			c.Git(t, "checkout", "--quiet", "--orphan", "alone")
			alone := c.Commit(t, "a", "4")
			r := gittest.Bare(t, c)
			for _, x := range []struct {
				ancestor, of string
				want         bool
			}{{a, b, true}, {a, a, true}, {b, a, false}, {b, d, false}, {a, alone, false}} {
				if got, err := history.IsAncestor(t.Context(), r, x.ancestor, x.of, nil); err != nil || got != x.want {
					t.Errorf("got %t, %v, want %t", got, err, x.want)
				}
			}
			for _, x := range [][3]string{{b, d, a}, {a, b, a}, {b, alone, ""}} {
				if got, err := history.MergeBase(t.Context(), r, x[0], x[1], nil); err != nil || got != x[2] {
					t.Errorf("got merge base %q, %v, want %q", got, err, x[2])
				}
			}
			absent := strings.Repeat("1", len(a))
			if ok, err := history.IsAncestor(t.Context(), r, a, absent, nil); ok || err == nil {
				t.Errorf("a commit that is not there: %t, %v", ok, err)
			}
			for _, bad := range []string{"", "HEAD", "--all", "^" + a} {
				if ok, err := history.IsAncestor(t.Context(), r, a, bad, nil); ok || err == nil {
					t.Errorf("%q: %t, %v", bad, ok, err)
				}
			}
		})
	}
}

func TestQuarantine(t *testing.T) {
	c := gittest.New(t, "sha1")
	a := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	b := c.Commit(t, "a", "2")
	incoming := r.Dir() + "/objects/tmp_objdir-incoming-abc123"
	if err := os.MkdirAll(incoming+"/pack", 0o755); err != nil {
		t.Fatal(err)
	}
	c.Env = []string{"PACK=" + incoming + "/pack/pack"}
	c.Git(t, "-c", "alias.p=!printf '"+b+"\\n^"+a+"\\n' | git pack-objects --quiet --revs $PACK", "p")

	if _, err := history.IsAncestor(t.Context(), r, a, b, nil); err == nil {
		t.Error("without the quarantine its objects are seen")
	}
	q, err := r.Quarantine("/somewhere/else/tmp_objdir-incoming-abc123")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := history.IsAncestor(t.Context(), r, a, b, q); !ok || err != nil {
		t.Errorf("got %t, %v", ok, err)
	}
	if paths, err := history.ChangedPaths(t.Context(), r, a, b, 100, q); err != nil || !slices.Equal(paths, []string{"a"}) {
		t.Errorf("got %q, %v", paths, err)
	}
	if base, err := history.MergeBase(t.Context(), r, a, b, q); err != nil || base != a {
		t.Errorf("got %q, %v", base, err)
	}

	if q, err := r.Quarantine(""); q != nil || err != nil {
		t.Errorf("none: %v, %v", q, err)
	}
	if err := os.Symlink("/", r.Dir()+"/objects/tmp_objdir-incoming-link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/", "..", r.Dir() + "/objects", r.Dir() + "/objects/pack", "tmp_objdir-incoming-", "tmp_objdir-incoming-gone",
		"tmp_objdir-incoming-link", "tmp_objdir-incoming-abc123/..", "tmp_objdir-incoming-a:b", "tmp_objdir-incoming-a\n",
	} {
		if q, err := r.Quarantine(path); err == nil {
			t.Errorf("%q is accepted: %+v", path, q)
		}
	}
}

func TestRefs(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			id := c.Commit(t, "a", "1")
			branches := []string{"refs/heads/a/b", "refs/heads/main", "refs/heads/z", "refs/heads/größe"}
			for _, b := range branches {
				c.Git(t, "update-ref", b, id)
			}
			c.Git(t, "tag", "-a", "-m", "One", "v1")
			r := gittest.Bare(t, c)
			if got := gittest.RefNames(t, r, "refs/heads/"); !slices.Equal(got, slices.Sorted(slices.Values(branches))) {
				t.Errorf("got %q", got)
			}
			for ref, err := range refs.List(t.Context(), r, "refs/tags/") {
				if err != nil || ref.Name != "refs/tags/v1" || ref.Type != "tag" || ref.Object == id {
					t.Errorf("got %+v, %v", ref, err)
				}
			}
			if got := gittest.RefNames(t, r, "refs/nothing/"); len(got) > 0 {
				t.Errorf("got %q", got)
			}
			if got := gittest.RefNames(t, r); len(got) != 5 {
				t.Errorf("got %q", got)
			}
			if got, err := refs.Resolve(t.Context(), r, "refs/tags/v1"); err != nil || got != id {
				t.Errorf("got %q, %v", got, err)
			}
			for _, absent := range []string{"refs/heads/absent", "--all", strings.Repeat("1", len(id)), ""} {
				if got, err := refs.Resolve(t.Context(), r, absent); !errors.Is(err, refs.ErrNotFound) {
					t.Errorf("%q: got %q, %v", absent, got, err)
				}
			}
		})
	}
}

func TestRefs_canStopEarly(t *testing.T) {
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 50_000 {
		fmt.Fprintf(&packed, "%s refs/heads/branch-%06d\n", id, i)
	}
	if err := os.WriteFile(r.Dir()+"/packed-refs", []byte(packed.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, err := range refs.List(t.Context(), r, "refs/heads/") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 3 {
			break
		}
	}
	if got := len(gittest.RefNames(t, r, "refs/heads/")); got != 50_001 {
		t.Errorf("got %d refs", got)
	}
}

func TestRefs_endWithAnError(t *testing.T) {
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "absent.git")
	var last error
	for _, err := range refs.List(t.Context(), r) {
		last = err
	}
	if !errors.Is(last, git.ErrNotFound) {
		t.Errorf("got %v", last)
	}
}

func TestIsObjectID_ofIDsAndOthers(t *testing.T) {
	id := strings.Repeat("09af", 10)
	for _, s := range []string{id, id + id[:24]} {
		if !object.IsID(s) {
			t.Errorf("%s is none", s)
		}
	}
	for _, s := range []string{"", id[1:], id + "0", id + id, strings.ToUpper(id), id[1:] + "g", id[1:] + "/", id[1:] + ":", id[1:] + "`", id[1:] + "\n", id[2:] + "ä"} {
		if object.IsID(s) {
			t.Errorf("%q is one", s)
		}
	}
}
