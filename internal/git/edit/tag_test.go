package edit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/edit"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

func TestTag_agreesWithGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			commit := c.Commit(t, "a", "1")
			c.Env = []string{"GIT_COMMITTER_DATE=1700000000 +0200", "GIT_COMMITTER_NAME=Bö <x>,", "GIT_COMMITTER_EMAIL=<b@example.com>"}
			c.Git(t, "tag", "--annotate", "--message=First\n\nand more", "v1")
			r := gittest.Bare(t, c)
			want := c.Git(t, "rev-parse", "v1")
			tag := object.Tag{
				Object: commit, Type: "commit", Name: "v1", Message: "First\n\nand more",
				Tagger: object.Signature{Name: "Bö <x>,\n", Email: "<b@example.com>", When: time.Unix(1_700_000_000, 0).In(time.FixedZone("", 2*60*60))},
			}
			got, err := edit.Tag(t.Context(), r, tag)
			if err != nil || got != want {
				t.Errorf("wrote %s (%v), and git wrote %s", got, err, want)
			}
			read, err := r.ReadTag(t.Context(), want)
			if err != nil || read.ID != want || read.Object != commit || read.Type != "commit" || read.Name != "v1" ||
				read.Message != "First\n\nand more\n" || read.Tagger.Name != "Bö x" || read.Tagger.Email != "b@example.com" ||
				!read.Tagger.When.Equal(tag.Tagger.When) {
				t.Errorf("read %+v (%v)", read, err)
			}
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			twice := c.Write(t, "tag", "object "+commit+"\ntype commit\ntag v2\ntagger a <a> 1 +0000\nobject "+tree+"\ntype tree\n\nx\n")
			c.Git(t, "push", "--quiet", r.Dir(), twice+":refs/tags/v2")
			if read, err := r.ReadTag(t.Context(), twice); err != nil || read.Object != commit || read.Type != "commit" {
				t.Errorf("of two objects it is %+v (%v)", read, err)
			}
			for _, id := range []string{commit, strings.Repeat("1", len(commit))} {
				if _, err := r.ReadTag(t.Context(), id); !errors.Is(err, git.ErrObjectNotFound) {
					t.Errorf("%s is no tag: %v", id, err)
				}
			}
			for about, change := range map[string]func(*object.Tag){
				"name":         func(t *object.Tag) { t.Name = "-d" },
				"two headers":  func(t *object.Tag) { t.Name = "a\ntagger b" },
				"object":       func(t *object.Tag) { t.Object = strings.Repeat("1", len(commit)) },
				"other type":   func(t *object.Tag) { t.Type = "tree" },
				"no object id": func(t *object.Tag) { t.Object = "main" },
			} {
				other := tag
				change(&other)
				if id, err := edit.Tag(t.Context(), r, other); err == nil {
					t.Errorf("%s: wrote %s", about, id)
				}
			}
		})
	}
}

func TestReadTag_refusesLargeTags(t *testing.T) {
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	id, err := edit.Tag(t.Context(), r, object.Tag{Object: commit, Type: "commit", Name: "v1", Message: strings.Repeat("x", 5<<20), Tagger: object.Signature{Name: "a", Email: "a", When: time.Unix(1, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadTag(t.Context(), id); !errors.Is(err, git.ErrFileTooLarge) {
		t.Errorf("read: %v", err)
	}
}
