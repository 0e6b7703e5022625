package object_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

func TestPackIndex_agreesWithGit(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			for i := range 100 {
				if err := os.WriteFile(filepath.Join(c.Dir, fmt.Sprint(i)), []byte(fmt.Sprint(i)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c.Git(t, "add", ".")
			c.Commit(t, "a", "0")
			c.Git(t, "repack", "-q", "-a", "-d")
			c.Git(t, "commit", "--quiet", "--amend", "--message=Other")
			missing := c.Git(t, "rev-parse", "HEAD")
			paths, err := filepath.Glob(filepath.Join(c.Dir, ".git/objects/pack/*.idx"))
			if err != nil || len(paths) != 1 {
				t.Fatalf("got %v, %v", paths, err)
			}
			index, err := object.OpenPackIndex(paths[0], len(missing))
			if err != nil {
				t.Fatal(err)
			}
			packed := strings.Fields(c.Git(t, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
			at := 0
			for _, text := range packed {
				id, err := hex.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				want := at
				if text == missing {
					want = -1
				} else {
					at++
				}
				if got := index.Find(id); got != want {
					t.Errorf("%s is at %d, want %d", text, got, want)
				}
			}
			if index.Length() != at {
				t.Errorf("got %d objects, want %d", index.Length(), at)
			}
			if got := index.Find([]byte("short")); got != -1 {
				t.Errorf("a short id is at %d", got)
			}
			if err := index.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPackIndex_refusesOtherFiles(t *testing.T) {
	header := "\xfftOc\x00\x00\x00\x02"
	for about, content := range map[string]string{
		"empty":               "",
		"of another version":  "\xfftOc\x00\x00\x00\x01" + strings.Repeat("\x00", 2000),
		"without its objects": header + strings.Repeat("\x00", 1020) + "\x00\x00\x01\x00",
	} {
		path := filepath.Join(t.TempDir(), "x.idx")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := object.OpenPackIndex(path, 40); err == nil {
			t.Errorf("%s: no error", about)
		}
	}
	if _, err := object.OpenPackIndex(filepath.Join(t.TempDir(), "none.idx"), 40); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}
