package edit_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing" // an implementation that is independent of git
	"github.com/go-git/go-git/v5/plumbing/cache"
	gogit "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

var (
	writer = object.Signature{Name: "Wendy Writer", Email: "wendy@example.com", When: time.Unix(1_700_000_000, 0).In(time.FixedZone("", -90*60))}
	poster = object.Signature{Name: "Pete <Poster>", Email: "pete@example.com", When: time.Unix(1_700_000_100, 0).UTC()}
	yes    = true
	no     = false
)

func newCommit(parent string, actions ...edit.Action) edit.NewCommit {
	return edit.NewCommit{Parent: parent, Actions: actions, Author: writer, Committer: poster, Message: "Change\n\nmuch\n"}
}

// committed writes a commit.
func committed(t *testing.T, r *git.Repository, parent string, actions ...edit.Action) string {
	t.Helper()
	id, err := edit.Commit(t.Context(), r, newCommit(parent, actions...))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func create(path, content string) edit.Action {
	return edit.Action{Kind: edit.CreateFile, Path: path, Content: []byte(content)}
}

func move(from, path string) edit.Action {
	return edit.Action{Kind: edit.MoveFile, From: from, Path: path}
}

func remove(path string) edit.Action { return edit.Action{Kind: edit.DeleteFile, Path: path} }

func TestCommit_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		c, r := gittest.New(t, format), unborn(t, format)
		c.Env = []string{
			"GIT_AUTHOR_NAME=" + writer.Name, "GIT_AUTHOR_EMAIL=" + writer.Email, "GIT_AUTHOR_DATE=1700000000 -0130",
			"GIT_COMMITTER_NAME=Pete Poster", "GIT_COMMITTER_EMAIL=" + poster.Email, "GIT_COMMITTER_DATE=1700000100 +0000",
		}
		paths := []string{"a b", "sub/x.txt", "sub-y", "sub.z", "q\"uote\n\ttab", "Ünï/ço∂é", "deep/er/and/deeper", "caf\xe9"}
		var actions []edit.Action
		for i, name := range paths {
			full := filepath.Join(c.Dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(strings.Repeat(name, i*1000)), 0o644)); err != nil {
				t.Fatal(err)
			}
			actions = append(actions, create(name, strings.Repeat(name, i*1000)))
		}
		c.Git(t, "add", "--all")
		c.Git(t, "commit", "--quiet", "--cleanup=verbatim", "--message=Change\n\nmuch")
		first := committed(t, r, "", actions...)
		if want := c.Git(t, "rev-parse", "HEAD"); first != want {
			t.Fatalf("%s: wrote %s, and git writes %s", format, first, want)
		}

		c.Git(t, "rm", "--quiet", "a b", "deep/er/and/deeper")
		c.Git(t, "mv", "sub/x.txt", "Ünï/x.txt")
		c.Git(t, "update-index", "--chmod=+x", "sub-y")
		c.Git(t, "commit", "--quiet", "--cleanup=verbatim", "--message=Change\n\nmuch")
		second := committed(t, r, first, remove("a b"), remove("deep/er/and/deeper"), move("sub/x.txt", "Ünï/x.txt"),
			edit.Action{Kind: edit.ChmodFile, Path: "sub-y", Executable: &yes})
		if want := c.Git(t, "rev-parse", "HEAD"); second != want {
			t.Fatalf("%s: wrote %s, and git writes %s", format, second, want)
		}
		store := &gittest.Client{Dir: r.Dir()}
		if refs := store.Git(t, "for-each-ref"); refs != "" {
			t.Errorf("there are the refs %s", refs)
		}
		if left := gittest.Entries(t, filepath.Join(r.Dir(), "objects")); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, "tmp") }) {
			t.Errorf("left in objects is %v", left)
		}
		store.Git(t, "update-ref", "refs/heads/main", second)
		store.Git(t, "fsck", "--strict", "--full")
	}
}

// unborn returns a repository without commits.
func unborn(t *testing.T, format string) *git.Repository {
	t.Helper()
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "a/b.git")
	if err := r.Init(t.Context(), git.InitOptions{ObjectFormat: format}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCommit_writesNothingIfItFails(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "dir/a", "1")
	c.Commit(t, "b", "2")
	c.Git(t, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	if err := os.Symlink("b", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link")
	c.Git(t, "commit", "--quiet", "--message=Add")
	parent := c.Git(t, "rev-parse", "HEAD")
	r := gittest.Bare(t, c)
	store := &gittest.Client{Dir: r.Dir()}
	before := store.Git(t, "count-objects", "-v")
	update := func(path string) edit.Action { return edit.Action{Kind: edit.UpdateFile, Path: path} }
	chmod := func(path string) edit.Action { return edit.Action{Kind: edit.ChmodFile, Path: path, Executable: &yes} }
	for _, is := range []struct {
		action edit.Action
		want   error
	}{
		{create("b", ""), edit.ErrFileExists},
		{create("module", ""), edit.ErrFileExists},
		{create("link", ""), edit.ErrFileExists},
		{create("dir", ""), edit.ErrDirectoryExists},
		{create("b/c", ""), edit.ErrNotDirectory},
		{create("b/c/d", ""), edit.ErrNotDirectory},
		{create("module/c", ""), edit.ErrNotDirectory},
		{create("link/c", ""), edit.ErrNotDirectory},
		{update("c"), edit.ErrFileNotFound},
		{update("dir"), edit.ErrFileNotFound},
		{update("b/c"), edit.ErrFileNotFound},
		{update("module"), edit.ErrFileNotFound},
		{remove("c"), edit.ErrFileNotFound},
		{remove("dir"), edit.ErrFileNotFound},
		{chmod("c"), edit.ErrFileNotFound},
		{chmod("dir"), edit.ErrFileNotFound},
		{move("c", "d"), edit.ErrFileNotFound},
		{move("b", "link"), edit.ErrFileExists},
		{move("b", "dir"), edit.ErrDirectoryExists},
		{move("b", "link/c"), edit.ErrNotDirectory},
		{edit.Action{Kind: edit.MoveFile, From: "module", Path: "m", Content: []byte("x")}, edit.ErrFileNotFound},
		{move("../b", "c"), edit.ErrInvalidPath},
		{create("", ""), edit.ErrInvalidPath},
		{create("/etc/passwd", ""), edit.ErrInvalidPath},
		{create("a/", ""), edit.ErrInvalidPath},
		{create("a//b", ""), edit.ErrInvalidPath},
		{create(".", ""), edit.ErrInvalidPath},
		{create("a/./b", ""), edit.ErrInvalidPath},
		{create("../a", ""), edit.ErrInvalidPath},
		{create("a/../../b", ""), edit.ErrInvalidPath},
		{create("a\x00b", ""), edit.ErrInvalidPath},
		{create(".git", ""), edit.ErrInvalidPath},
		{create("a/.GiT/hooks/x", ""), edit.ErrInvalidPath},
		{move("b", ".git/b"), edit.ErrInvalidPath},
		{create(strings.Repeat("a", 256), ""), edit.ErrInvalidPath},
		{create(strings.Repeat("a/", 2048)+"b", ""), edit.ErrInvalidPath},
	} {
		id, err := edit.Commit(t.Context(), r, newCommit(parent, create("fine", "fine"), is.action))
		var which *edit.ActionError
		if !errors.Is(err, is.want) || !errors.As(err, &which) {
			t.Errorf("%+v: %s, %v", is.action, id, err)
		}
	}
	for about, change := range map[string]func(*edit.NewCommit){
		"a kind of no such":  func(c *edit.NewCommit) { c.Actions[0].Kind = "copy" },
		"a parent of no id":  func(c *edit.NewCommit) { c.Parent = "main" },
		"no such parent":     func(c *edit.NewCommit) { c.Parent = strings.Repeat("1", 40) },
		"a tree as parent":   func(c *edit.NewCommit) { c.Parent = store.Git(t, "rev-parse", "main^{tree}") },
		"a long message":     func(c *edit.NewCommit) { c.Message = strings.Repeat("a", 2<<20) },
		"too many actions":   func(c *edit.NewCommit) { c.Actions = make([]edit.Action, 10_001) },
		"too long a content": func(c *edit.NewCommit) { c.Actions[0].Content = make([]byte, 64<<20+1) },
	} {
		with := newCommit(parent, create("new", ""))
		change(&with)
		if id, err := edit.Commit(t.Context(), r, with); err == nil {
			t.Errorf("%s: wrote %s", about, id)
		}
	}
	if after := store.Git(t, "count-objects", "-v"); after != before {
		t.Errorf("before there was\n%s\nand now\n%s", before, after)
	}
}

func TestCommit_passesTheChecksOfGit(t *testing.T) {
	c := gittest.New(t, "sha1")
	if err := os.Symlink("b", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link")
	parent := c.Commit(t, "b", "2")
	r := gittest.Bare(t, c)
	// Paths that are dangerous in work trees of other systems, and paths with which Git could do harm.
	for _, action := range []edit.Action{
		create("git~1/config", ""), create(".git. . ./config", ""), create(".g\u200cit/config", ""), create(`a\.git`, ""),
		create(".git::$INDEX_ALLOCATION/config", ""),
		create(".gitmodules", "[submodule \"x\"]\n\turl = -u./payload\n\tpath = x\n"), move("link", ".gitmodules"),
	} {
		id, err := edit.Commit(t.Context(), r, newCommit(parent, action))
		var refused *edit.RefusedObjectError
		if !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("%+v: %s, %v", action, id, err)
		}
	}
	with := newCommit(parent, create("a", ""))
	with.Message = "a\x00b"
	var refused *edit.RefusedObjectError
	if id, err := edit.Commit(t.Context(), r, with); !errors.As(err, &refused) {
		t.Errorf("NUL: %s, %v", id, err)
	}
}

func TestCommit_limitsTheDirectoriesThatItChanges(t *testing.T) {
	r := unborn(t, "sha1")
	var actions []edit.Action
	for i := range 400 {
		actions = append(actions, create(fmt.Sprintf("%d%s/b", i, strings.Repeat("/a", 1500)), ""))
	}
	if id, err := edit.Commit(t.Context(), r, newCommit("", actions...)); !errors.Is(err, edit.ErrTooLarge) {
		t.Errorf("wrote %s, %v", id, err)
	}
}

func TestCommit_expectsTheLastCommitOfAFile(t *testing.T) {
	c := gittest.New(t, "sha1")
	first := c.Commit(t, "*", "1")
	second := c.Commit(t, "b", "2")
	r := gittest.Bare(t, c)
	expects := func(a edit.Action, last string) edit.Action { a.LastCommit = last; return a }
	update := edit.Action{Kind: edit.UpdateFile, Path: "*"}
	committed(t, r, second, expects(update, first), expects(move("b", "c"), second))
	committed(t, r, second, expects(remove("*"), first))
	for _, a := range []edit.Action{
		expects(update, second), expects(update, "x"), expects(remove("b"), first), expects(move("b", "c"), first), expects(move("no", "c"), first),
		expects(create("new", ""), second),
	} {
		if id, err := edit.Commit(t.Context(), r, newCommit(second, a)); !errors.Is(err, edit.ErrFileChanged) {
			t.Errorf("%+v: wrote %s, %v", a, id, err)
		}
	}
}

// model is the expected tree: modes and contents by path.
type model map[string]string

// under reports whether the model has anything below a directory.
func (m model) under(dir string) bool {
	for path := range m {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// inTheWay reports whether a file has the path of a directory of the given path.
func (m model) inTheWay(path string) bool {
	for i := range path {
		if _, file := m[path[:i]]; file && path[i] == '/' {
			return true
		}
	}
	return false
}

// vacant returns the error for a new file at a path, or nil.
func (m model) vacant(path string) error {
	switch _, file := m[path]; {
	case file:
		return edit.ErrFileExists
	case m.under(path):
		return edit.ErrDirectoryExists
	case m.inTheWay(path):
		return edit.ErrNotDirectory
	}
	return nil
}

func mode(executable *bool, otherwise string) string {
	switch {
	case executable == nil:
		return otherwise
	case *executable:
		return "100755 "
	}
	return "100644 "
}

// do applies an action, or returns why it cannot be applied.
func (m model) do(a edit.Action) error {
	from := a.Path
	if a.Kind == edit.MoveFile {
		from = a.From
	}
	is, there := m[from]
	if a.Kind == edit.CreateFile {
		if err := m.vacant(a.Path); err != nil {
			return err
		}
		m[a.Path] = mode(a.Executable, "100644 ") + string(a.Content)
		return nil
	}
	if !there {
		return edit.ErrFileNotFound
	}
	bits, content := mode(a.Executable, is[:7]), is[7:]
	if a.Content != nil {
		content = string(a.Content)
	}
	switch a.Kind {
	case edit.DeleteFile:
		delete(m, a.Path)
		return nil
	case edit.MoveFile:
		delete(m, a.From)
		if err := m.vacant(a.Path); err != nil {
			return err
		}
	}
	m[a.Path] = bits + content
	return nil
}

// randomAction returns an action on one of a few paths, often on an existing one, so that actions collide.
func randomAction(random *rand.Rand, there []string) edit.Action {
	path := func() string {
		if len(there) > 0 && random.IntN(2) == 0 {
			return there[random.IntN(len(there))]
		}
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = []string{"a", "b", "a.b", "a-", `ü"`}[random.IntN(5)]
		}
		return strings.Join(parts, "/")
	}
	a := edit.Action{Path: path(), Executable: []*bool{nil, nil, &yes, &no}[random.IntN(4)]}
	a.Kind = []edit.ActionKind{
		edit.CreateFile, edit.CreateFile, edit.CreateFile, edit.UpdateFile, edit.DeleteFile, edit.MoveFile, edit.ChmodFile,
	}[random.IntN(7)]
	if a.Kind == edit.MoveFile {
		a.From = path()
	}
	if a.Kind == edit.CreateFile || a.Kind == edit.UpdateFile || a.Kind == edit.MoveFile && random.IntN(2) == 0 {
		a.Content = []byte(fmt.Sprint(random.IntN(100)))
	}
	return a
}

func TestCommit_agreesWithAModel(t *testing.T) {
	for _, format := range gittest.Formats {
		random := rand.New(rand.NewPCG(1, 2))
		r := unborn(t, format)
		is, parent, refused := model{}, "", map[error]int{}
		for range 150 {
			next, actions, want := maps.Clone(is), []edit.Action(nil), error(nil)
			for range 1 + random.IntN(4) {
				a := randomAction(random, slices.Sorted(maps.Keys(next)))
				actions = append(actions, a)
				if want = next.do(a); want != nil {
					break
				}
			}
			id, err := edit.Commit(t.Context(), r, newCommit(parent, actions...))
			if !errors.Is(err, want) || err != nil && want == nil {
				t.Fatalf("%+v on %v: %v, want %v", actions, is, err, want)
			}
			if want != nil {
				refused[want]++
				continue
			}
			is, parent = next, id
			if got := contents(t, r, id); !maps.Equal(got, is) {
				t.Fatalf("%+v: there is %v, want %v", actions, got, is)
			}
		}
		store := &gittest.Client{Dir: r.Dir()}
		store.Git(t, "update-ref", "refs/heads/main", parent)
		store.Git(t, "fsck", "--strict", "--full")
		if commits := store.Git(t, "rev-list", "--count", "main"); commits < "20" || len(refused) != 4 {
			t.Errorf("there are %s commits, and %v", commits, refused)
		}
		if format == "sha1" { // the only format that the reader supports
			if got := independently(t, r, parent); !maps.Equal(got, is) {
				t.Errorf("another reader finds %v, want %v", got, is)
			}
		}
	}
}

// contents returns the content of a commit, as git reads it.
func contents(t *testing.T, r *git.Repository, commit string) model {
	t.Helper()
	entries, err := snapshot.Tree(t.Context(), r, commit, "", true)
	if err != nil {
		t.Fatal(err)
	}
	found := model{}
	for _, e := range entries {
		if e.Type == "tree" {
			continue
		}
		_, content, err := r.Read(t.Context(), e.ID, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		found[e.Path] = e.Mode + " " + string(content)
	}
	return found
}

// independently returns the content of a commit, as an implementation independent of git reads it.
func independently(t *testing.T, r *git.Repository, id string) model {
	t.Helper()
	storage := filesystem.NewStorage(osfs.New(r.Dir()), cache.NewObjectLRUDefault())
	commit, err := gogit.GetCommit(storage, plumbing.NewHash(id))
	if err != nil {
		t.Fatal(err)
	}
	if a := commit.Author; a.Name != writer.Name || a.Email != writer.Email || !a.When.Equal(writer.When) ||
		commit.Committer.Name != "Pete Poster" || commit.Message != "Change\n\nmuch\n" {
		t.Errorf("another reader finds %s", commit)
	}
	files, err := commit.Files()
	if err != nil {
		t.Fatal(err)
	}
	found := model{}
	if err := files.ForEach(func(f *gogit.File) error {
		content, err := f.Contents()
		found[f.Name] = fmt.Sprintf("%06o %s", uint32(f.Mode), content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
