package git_test

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
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

var (
	writer = git.Signature{Name: "Wendy Writer", Email: "wendy@example.com", When: time.Unix(1_700_000_000, 0).In(time.FixedZone("", -90*60))}
	poster = git.Signature{Name: "Pete <Poster>", Email: "pete@example.com", When: time.Unix(1_700_000_100, 0).UTC()}
	yes    = true
	no     = false
)

func newCommit(parent string, actions ...git.Action) git.NewCommit {
	return git.NewCommit{Parent: parent, Actions: actions, Author: writer, Committer: poster, Message: "Change\n\nmuch\n"}
}

// committed writes a commit.
func committed(t *testing.T, r *git.Repository, parent string, actions ...git.Action) string {
	t.Helper()
	id, err := r.WriteCommit(t.Context(), newCommit(parent, actions...))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func create(path, content string) git.Action {
	return git.Action{Kind: git.CreateFile, Path: path, Content: []byte(content)}
}

func move(from, path string) git.Action {
	return git.Action{Kind: git.MoveFile, From: from, Path: path}
}

func remove(path string) git.Action { return git.Action{Kind: git.DeleteFile, Path: path} }

func TestACommitIsWrittenAsGitWritesIt(t *testing.T) {
	for _, format := range formats {
		c, r := gittest.New(t, format), unborn(t, format)
		c.Env = []string{
			"GIT_AUTHOR_NAME=" + writer.Name, "GIT_AUTHOR_EMAIL=" + writer.Email, "GIT_AUTHOR_DATE=1700000000 -0130",
			"GIT_COMMITTER_NAME=Pete Poster", "GIT_COMMITTER_EMAIL=" + poster.Email, "GIT_COMMITTER_DATE=1700000100 +0000",
		}
		paths := []string{"a b", "sub/x.txt", "sub-y", "sub.z", "q\"uote\n\ttab", "Ünï/ço∂é", "deep/er/and/deeper", "caf\xe9"}
		var actions []git.Action
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
			git.Action{Kind: git.ChmodFile, Path: "sub-y", Executable: &yes})
		if want := c.Git(t, "rev-parse", "HEAD"); second != want {
			t.Fatalf("%s: wrote %s, and git writes %s", format, second, want)
		}
		store := &gittest.Client{Dir: r.Dir()}
		if refs := store.Git(t, "for-each-ref"); refs != "" {
			t.Errorf("there are the refs %s", refs)
		}
		if left := names(t, filepath.Join(r.Dir(), "objects")); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, "tmp") }) {
			t.Errorf("left in objects is %v", left)
		}
		store.Git(t, "update-ref", "refs/heads/main", second)
		store.Git(t, "fsck", "--strict", "--full")
	}
}

// unborn returns a repository without commits.
func unborn(t *testing.T, format string) *git.Repository {
	t.Helper()
	r := repository(t, newEngine(t), t.TempDir(), "a/b.git")
	if err := r.Init(t.Context(), git.InitOptions{ObjectFormat: format}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOfACommitThatCannotBeNothingIsWritten(t *testing.T) {
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
	r := bare(t, c)
	store := &gittest.Client{Dir: r.Dir()}
	before := store.Git(t, "count-objects", "-v")
	update := func(path string) git.Action { return git.Action{Kind: git.UpdateFile, Path: path} }
	chmod := func(path string) git.Action { return git.Action{Kind: git.ChmodFile, Path: path, Executable: &yes} }
	for _, is := range []struct {
		action git.Action
		want   error
	}{
		{create("b", ""), git.ErrFileExists},
		{create("module", ""), git.ErrFileExists},
		{create("link", ""), git.ErrFileExists},
		{create("dir", ""), git.ErrDirectoryExists},
		{create("b/c", ""), git.ErrNotDirectory},
		{create("b/c/d", ""), git.ErrNotDirectory},
		{create("module/c", ""), git.ErrNotDirectory},
		{create("link/c", ""), git.ErrNotDirectory},
		{update("c"), git.ErrFileNotFound},
		{update("dir"), git.ErrFileNotFound},
		{update("b/c"), git.ErrFileNotFound},
		{update("module"), git.ErrFileNotFound},
		{remove("c"), git.ErrFileNotFound},
		{remove("dir"), git.ErrFileNotFound},
		{chmod("c"), git.ErrFileNotFound},
		{chmod("dir"), git.ErrFileNotFound},
		{move("c", "d"), git.ErrFileNotFound},
		{move("b", "link"), git.ErrFileExists},
		{move("b", "dir"), git.ErrDirectoryExists},
		{move("b", "link/c"), git.ErrNotDirectory},
		{git.Action{Kind: git.MoveFile, From: "module", Path: "m", Content: []byte("x")}, git.ErrFileNotFound},
		{move("../b", "c"), git.ErrInvalidPath},
		{create("", ""), git.ErrInvalidPath},
		{create("/etc/passwd", ""), git.ErrInvalidPath},
		{create("a/", ""), git.ErrInvalidPath},
		{create("a//b", ""), git.ErrInvalidPath},
		{create(".", ""), git.ErrInvalidPath},
		{create("a/./b", ""), git.ErrInvalidPath},
		{create("../a", ""), git.ErrInvalidPath},
		{create("a/../../b", ""), git.ErrInvalidPath},
		{create("a\x00b", ""), git.ErrInvalidPath},
		{create(".git", ""), git.ErrInvalidPath},
		{create("a/.GiT/hooks/x", ""), git.ErrInvalidPath},
		{move("b", ".git/b"), git.ErrInvalidPath},
		{create(strings.Repeat("a", 256), ""), git.ErrInvalidPath},
		{create(strings.Repeat("a/", 2048)+"b", ""), git.ErrInvalidPath},
	} {
		id, err := r.WriteCommit(t.Context(), newCommit(parent, create("fine", "fine"), is.action))
		var which *git.ActionError
		if !errors.Is(err, is.want) || !errors.As(err, &which) {
			t.Errorf("%+v: %s, %v", is.action, id, err)
		}
	}
	for about, change := range map[string]func(*git.NewCommit){
		"a kind of no such":  func(c *git.NewCommit) { c.Actions[0].Kind = "copy" },
		"a parent of no id":  func(c *git.NewCommit) { c.Parent = "main" },
		"no such parent":     func(c *git.NewCommit) { c.Parent = strings.Repeat("1", 40) },
		"a tree as parent":   func(c *git.NewCommit) { c.Parent = store.Git(t, "rev-parse", "main^{tree}") },
		"a long message":     func(c *git.NewCommit) { c.Message = strings.Repeat("a", 2<<20) },
		"too many actions":   func(c *git.NewCommit) { c.Actions = make([]git.Action, 10_001) },
		"too long a content": func(c *git.NewCommit) { c.Actions[0].Content = make([]byte, 64<<20+1) },
	} {
		with := newCommit(parent, create("new", ""))
		change(&with)
		if id, err := r.WriteCommit(t.Context(), with); err == nil {
			t.Errorf("%s: wrote %s", about, id)
		}
	}
	if after := store.Git(t, "count-objects", "-v"); after != before {
		t.Errorf("before there was\n%s\nand now\n%s", before, after)
	}
}

func TestGitsOwnChecksHoldForACommit(t *testing.T) {
	c := gittest.New(t, "sha1")
	if err := os.Symlink("b", filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "add", "link")
	parent := c.Commit(t, "b", "2")
	r := bare(t, c)
	// Paths that are dangerous in work trees of other systems, and paths with which Git could do harm.
	for _, action := range []git.Action{
		create("git~1/config", ""), create(".git. . ./config", ""), create(".g\u200cit/config", ""), create(`a\.git`, ""),
		create(".git::$INDEX_ALLOCATION/config", ""),
		create(".gitmodules", "[submodule \"x\"]\n\turl = -u./payload\n\tpath = x\n"), move("link", ".gitmodules"),
	} {
		id, err := r.WriteCommit(t.Context(), newCommit(parent, action))
		var refused *git.RefusedObjectError
		if !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("%+v: %s, %v", action, id, err)
		}
	}
	with := newCommit(parent, create("a", ""))
	with.Message = "a\x00b"
	var refused *git.RefusedObjectError
	if id, err := r.WriteCommit(t.Context(), with); !errors.As(err, &refused) {
		t.Errorf("NUL: %s, %v", id, err)
	}
}

func TestACommitThatTouchesTooManyDirectoriesIsNotWritten(t *testing.T) {
	r := unborn(t, "sha1")
	var actions []git.Action
	for i := range 400 {
		actions = append(actions, create(fmt.Sprintf("%d%s/b", i, strings.Repeat("/a", 1500)), ""))
	}
	if id, err := r.WriteCommit(t.Context(), newCommit("", actions...)); !errors.Is(err, git.ErrCommitTooLarge) {
		t.Errorf("wrote %s, %v", id, err)
	}
}

func TestACommitExpectsWhoChangedAFileLast(t *testing.T) {
	c := gittest.New(t, "sha1")
	first := c.Commit(t, "*", "1")
	second := c.Commit(t, "b", "2")
	r := bare(t, c)
	expects := func(a git.Action, last string) git.Action { a.LastCommit = last; return a }
	update := git.Action{Kind: git.UpdateFile, Path: "*"}
	committed(t, r, second, expects(update, first), expects(move("b", "c"), second))
	committed(t, r, second, expects(remove("*"), first))
	for _, a := range []git.Action{
		expects(update, second), expects(update, "x"), expects(remove("b"), first), expects(move("b", "c"), first), expects(move("no", "c"), first),
		expects(create("new", ""), second),
	} {
		if id, err := r.WriteCommit(t.Context(), newCommit(second, a)); !errors.Is(err, git.ErrFileChanged) {
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
		return git.ErrFileExists
	case m.under(path):
		return git.ErrDirectoryExists
	case m.inTheWay(path):
		return git.ErrNotDirectory
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
func (m model) do(a git.Action) error {
	from := a.Path
	if a.Kind == git.MoveFile {
		from = a.From
	}
	is, there := m[from]
	if a.Kind == git.CreateFile {
		if err := m.vacant(a.Path); err != nil {
			return err
		}
		m[a.Path] = mode(a.Executable, "100644 ") + string(a.Content)
		return nil
	}
	if !there {
		return git.ErrFileNotFound
	}
	bits, content := mode(a.Executable, is[:7]), is[7:]
	if a.Content != nil {
		content = string(a.Content)
	}
	switch a.Kind {
	case git.DeleteFile:
		delete(m, a.Path)
		return nil
	case git.MoveFile:
		delete(m, a.From)
		if err := m.vacant(a.Path); err != nil {
			return err
		}
	}
	m[a.Path] = bits + content
	return nil
}

// randomAction returns an action on one of a few paths, often on an existing one, so that actions collide.
func randomAction(random *rand.Rand, there []string) git.Action {
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
	a := git.Action{Path: path(), Executable: []*bool{nil, nil, &yes, &no}[random.IntN(4)]}
	a.Kind = []git.ActionKind{
		git.CreateFile, git.CreateFile, git.CreateFile, git.UpdateFile, git.DeleteFile, git.MoveFile, git.ChmodFile,
	}[random.IntN(7)]
	if a.Kind == git.MoveFile {
		a.From = path()
	}
	if a.Kind == git.CreateFile || a.Kind == git.UpdateFile || a.Kind == git.MoveFile && random.IntN(2) == 0 {
		a.Content = []byte(fmt.Sprint(random.IntN(100)))
	}
	return a
}

func TestCommitsOfRandomActionsHaveWhatAModelHas(t *testing.T) {
	for _, format := range formats {
		random := rand.New(rand.NewPCG(1, 2))
		r := unborn(t, format)
		is, parent, refused := model{}, "", map[error]int{}
		for range 150 {
			next, actions, want := maps.Clone(is), []git.Action(nil), error(nil)
			for range 1 + random.IntN(4) {
				a := randomAction(random, slices.Sorted(maps.Keys(next)))
				actions = append(actions, a)
				if want = next.do(a); want != nil {
					break
				}
			}
			id, err := r.WriteCommit(t.Context(), newCommit(parent, actions...))
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

// contents returns what git reads from a commit.
func contents(t *testing.T, r *git.Repository, commit string) model {
	t.Helper()
	entries, err := r.Tree(t.Context(), commit, "", true)
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

// independently returns what an implementation independent of git reads.
func independently(t *testing.T, r *git.Repository, id string) model {
	t.Helper()
	storage := filesystem.NewStorage(osfs.New(r.Dir()), cache.NewObjectLRUDefault())
	commit, err := object.GetCommit(storage, plumbing.NewHash(id))
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
	if err := files.ForEach(func(f *object.File) error {
		content, err := f.Contents()
		found[f.Name] = fmt.Sprintf("%06o %s", uint32(f.Mode), content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
