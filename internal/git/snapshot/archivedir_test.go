package snapshot_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// The operating system can remove directories that have not been used for a while, and another user can create one with the same name.
func TestWriteArchive_ignoresDirectoriesOfOthers(t *testing.T) {
	g := NewWithT(t)
	temporary, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	t.Setenv("TMPDIR", temporary)
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "a", "a")
	r := gittest.Bare(t, c)
	archive := func(f snapshot.ArchiveFormat) {
		t.Helper()
		g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: "x", Format: f}, io.Discard)).To(Succeed())
	}
	archive(snapshot.Tar)
	left := gittest.Entries(t, temporary)
	for _, name := range left {
		dir := filepath.Join(temporary, name)
		g.Expect(os.RemoveAll(dir)).To(Succeed())
		for _, below := range []string{"info", "objects", "refs"} {
			g.Expect(os.MkdirAll(filepath.Join(dir, below), 0o755)).To(Succeed())
		}
		for file, text := range map[string]string{
			"HEAD": "ref: refs/heads/main\n", "info/attributes": "* filter=x\n",
			"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[filter \"x\"]\n\tsmudge = touch " + ran + "; cat\n",
		} {
			g.Expect(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)).To(Succeed())
		}
	}
	archive(snapshot.Zip)
	g.Expect(ran).NotTo(BeAnExistingFile(), "the command of somebody else ran")
	g.Expect(left).To(BeEmpty(), "it is left behind")
}

func TestArchive_keepsWhatItNeedsInItsOwnDirectory(t *testing.T) {
	g := NewWithT(t)
	scratch, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	g.Expect(os.MkdirAll(filepath.Join(scratch, "forgeplane-archive-1", "info"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(scratch, "hook.sock"), nil, 0o600)).To(Succeed())
	var refused error
	e, err := git.NewEngine(t.Context(), git.Options{
		Binary:  gittest.Script(t, `[ "$1" != archive ] || echo "$GIT_DIR" >>`+seen+"\nexec git \"$@\""),
		Scratch: func() (string, error) { return scratch, refused },
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer e.Close()
	g.Expect(gittest.Entries(t, scratch)).To(ConsistOf("hook.sock"), "what a killed process has left")
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "a", "a")
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
	archive := func(prefix string) error {
		return snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: prefix, Format: snapshot.Tar}, io.Discard)
	}
	g.Expect(archive("x")).To(Succeed())
	used, err := os.ReadFile(seen)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(used)).To(HavePrefix(filepath.Join(scratch, "forgeplane-archive-")))
	g.Expect(gittest.Entries(t, scratch)).To(ConsistOf("hook.sock"))
	refused = errors.New("the directory belongs to another user")
	g.Expect(archive("y")).To(MatchError(refused))
}

func TestScratch_isFull(t *testing.T) {
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "a", "a")
	storage := gittest.Storage(t, c)
	for _, options := range []string{"nr_inodes=1", "nr_inodes=3"} { // for nothing, and for some of the files
		t.Run(options, func(t *testing.T) {
			g, scratch := NewWithT(t), gittest.Mount(t, options)
			e, err := git.NewEngine(t.Context(), git.Options{Scratch: func() (string, error) { return scratch, nil }})
			g.Expect(err).NotTo(HaveOccurred())
			defer e.Close()
			r := gittest.Repository(t, e, storage, "b.git")
			full := And(MatchError(git.ErrScratch), WithTransform(git.NoSpace, BeTrue()))
			g.Expect(snapshot.WriteArchive(t.Context(), r, snapshot.Archive{Commit: commit, Prefix: "x", Format: snapshot.Tar}, io.Discard)).To(full)
			_, _, err = e.Join(t.Context(), "sha1", r)
			g.Expect(err).To(full)
			g.Expect(gittest.Entries(t, scratch)).To(BeEmpty())
		})
	}
}
