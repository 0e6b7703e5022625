package snapshot_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

func TestReadFile_reportsMissingObject(t *testing.T) {
	// For the root, the error names the commit.
	for about, missing := range map[string]string{"file": "HEAD:dir/a", "directory": "HEAD:dir", "root": "HEAD^{tree}"} {
		t.Run(about, func(t *testing.T) {
			c := gittest.New(t, "sha1")
			commit := c.Commit(t, "dir/a", "1")
			object := c.Git(t, "rev-parse", missing)
			if err := os.Remove(filepath.Join(c.Dir, ".git/objects", object[:2], object[2:])); err != nil {
				t.Fatal(err)
			}
			e, err := git.NewEngine(t.Context(), git.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			r, err := e.Repository(c.Dir, ".git")
			if err != nil {
				t.Fatal(err)
			}
			if about == "root" {
				object = commit
			}
			_, err = snapshot.ReadFile(t.Context(), r, commit, "dir/a", 100)
			if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, git.ErrObjectNotFound) || !strings.Contains(err.Error(), object) {
				t.Errorf("got %v", err)
			}
			_, err = snapshot.ReadFile(t.Context(), r, commit, "absent", 100)
			if errors.Is(err, fs.ErrNotExist) == (about == "root") {
				t.Errorf("a file that does not exist: %v", err)
			}
		})
	}
}
