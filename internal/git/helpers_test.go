package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func newEngine(t testing.TB) *git.Engine {
	t.Helper()
	e, err := git.NewEngine(t.Context(), git.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// engineWith returns an engine whose git is a shell script that runs before and then becomes the real git.
func engineWith(t testing.TB, before string) *git.Engine {
	t.Helper()
	e, err := git.NewEngine(t.Context(), git.Options{Binary: script(t, before+"\nexec git \"$@\"")})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func repository(t testing.TB, e *git.Engine, storage, path string) *git.Repository {
	t.Helper()
	r, err := e.Repository(storage, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bare returns a new repository with the content of a client.
func bare(t testing.TB, c *gittest.Client) *git.Repository {
	t.Helper()
	r := repository(t, newEngine(t), t.TempDir(), "a/b.git")
	if err := r.Init(t.Context(), git.InitOptions{ObjectFormat: c.Git(t, "rev-parse", "--show-object-format")}); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "push", "--quiet", "--mirror", r.Dir())
	return r
}

// names lists the entries of a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// formats are the object formats.
var formats = []string{"sha1", "sha256"}
