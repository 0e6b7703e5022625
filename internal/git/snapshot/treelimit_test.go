package snapshot_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/soak"
)

// The paths of a directory of 640 KB at a depth of 16,000 bytes have 320 MB. The paths of one of 16 MiB have 8 GB.
func TestTree_deepAndWide(t *testing.T) {
	const files = 20_000
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	names := make([]string, 8)
	for i := range names {
		names[i] = strings.Repeat(strconv.Itoa(i), 1999)
	}
	deep, last := c.Wide(t, files, names...)
	shallow, name := c.Wide(t, files, "dir")
	r := gittest.Bare(t, c)
	directory := strings.Join(names, "/")

	var err error
	g.Expect(soak.Allocated(func() { _, err = snapshot.Tree(t.Context(), r, deep, directory, false) })).To(BeNumerically("<", 100<<20))
	g.Expect(err).To(MatchError(process.ErrOutputTooLarge))
	var entry object.TreeEntry
	g.Expect(soak.Allocated(func() { entry, err = snapshot.Entry(t.Context(), r, deep, last) })).To(BeNumerically("<", 4<<20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entry.Path).To(Equal(last))
	g.Expect(entry.Name()).To(Equal(name[len("dir/"):]))
	g.Expect(soak.Allocated(func() { _, err = snapshot.Entry(t.Context(), r, deep, directory+"/zzzz") })).To(BeNumerically("<", 4<<20))
	g.Expect(err).To(MatchError(git.ErrObjectNotFound))

	entries, err := snapshot.Tree(t.Context(), r, shallow, "dir", false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(files))
	g.Expect(entries[0].Path).To(Equal("dir/1000"))
	g.Expect(snapshot.Entry(t.Context(), r, shallow, name)).To(Equal(entries[files-1]))
}

func TestTree_ofMoreEntriesThanAreListed(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	many, last := c.Wide(t, 500_001, "dir")
	few, _ := c.Wide(t, 500_000, "dir")
	r := gittest.Bare(t, c)
	for _, recursive := range []bool{false, true} {
		_, err := snapshot.Tree(t.Context(), r, many, "dir", recursive)
		g.Expect(err).To(MatchError(process.ErrOutputTooLarge), "recursive: %t", recursive)
		entries, err := snapshot.Tree(t.Context(), r, few, "dir", recursive)
		g.Expect(err).NotTo(HaveOccurred(), "recursive: %t", recursive)
		g.Expect(entries).To(HaveLen(500_000), "recursive: %t", recursive)
	}
	g.Expect(snapshot.Entry(t.Context(), r, many, last)).To(HaveField("Path", last))
}

// The names of 50,000 tags are 5 MB in git's list.
func TestRefs_ofVeryManyAreNotHeldTwice(t *testing.T) {
	const tags = 50_000
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	r := gittest.Bare(t, c)
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n" + id + " refs/heads/main\n")
	for i := range tags {
		packed.WriteString(id + " refs/tags/the-tag-of-a-release-that-has-a-name-" + strconv.Itoa(10*tags+i) + "\n")
	}
	g.Expect(os.WriteFile(filepath.Join(r.Dir(), "packed-refs"), []byte(packed.String()), 0o600)).To(Succeed())
	var listed []refs.Ref
	var tips []string
	var err error
	g.Expect(soak.Allocated(func() { listed, err = refs.Merged(t.Context(), r, id, "refs/tags/") })).To(BeNumerically("<", 32<<20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed).To(HaveLen(tags))
	g.Expect(soak.Allocated(func() { tips, err = refs.Tips(t.Context(), r, "refs/") })).To(BeNumerically("<", 10<<20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tips).To(HaveLen(tags + 1))

	list := func() { listed, err = refs.Sorted(t.Context(), r, "refs/tags/", refs.ByName, true) }
	g.Expect(soak.Allocated(list)).To(BeNumerically("<", 32<<20))
	g.Eventually(func() uint64 { return soak.Allocated(list) }).WithTimeout(patience.Wait).WithPolling(100*time.Millisecond).
		Should(BeNumerically("<", 64<<10), "it is remembered")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed).To(HaveLen(tags))
}
