package refs_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

func TestApply_ofMoreRefsThanARepositoryMayHave(t *testing.T) {
	const sentence = "The repository would have 5 branches and tags, more than the 4 that the server allows. Delete some of them first."
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	c.Git(t, "update-ref", object.InternalRefs+"x", id)
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Refs: 4}), c.Dir, ".git")
	apply := func(old, new string, listed ...string) error {
		var updates []update.Ref
		for _, ref := range listed {
			updates = append(updates, update.Ref{Name: ref, Old: old, New: new})
		}
		return refs.Apply(t.Context(), r, updates...)
	}
	g.Expect(apply("", id, "refs/heads/a/b", "refs/tags/1", "refs/tags/2")).To(Succeed())
	for _, packed := range []bool{false, true} {
		if packed {
			c.Git(t, "pack-refs", "--all")
		}
		g.Expect(git.LimitReached(apply("", id, "refs/tags/3"))).To(Equal(sentence), "packed: %t", packed)
		// A packed ref is also a file if it has changed since.
		next := c.Commit(t, "a", map[bool]string{false: "2", true: "3"}[packed])
		g.Expect(apply(id, next, "refs/heads/a/b")).To(Succeed(), "packed: %t", packed)
		g.Expect(git.LimitReached(apply("", id, "refs/tags/3"))).To(Equal(sentence), "packed: %t", packed)
		g.Expect(apply(next, "", "refs/heads/a/b")).To(Succeed(), "packed: %t", packed)
		g.Expect(apply("", id, "refs/heads/a/b")).To(Succeed(), "packed: %t", packed)
	}
	unlimited := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Refs: -1}), c.Dir, ".git")
	g.Expect(refs.Apply(t.Context(), unlimited, update.Ref{Name: "refs/tags/3", New: id})).To(Succeed())
	// A repository that exceeds a lowered limit can still lose refs.
	g.Expect(apply(id, "", "refs/tags/1")).To(Succeed())
}

func TestReserve_forSeveralAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Refs: 3}), c.Dir, ".git")
	first, err := refs.Reserve(r, update.Ref{Name: "refs/tags/1", New: id}, update.Ref{Name: "refs/tags/2", Old: strings.Repeat("0", 40), New: id})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = refs.Reserve(r, update.Ref{Name: "refs/tags/3", New: id})
	g.Expect(git.LimitReached(err)).To(ContainSubstring("would have 4 branches and tags"))
	none, err := refs.Reserve(r, update.Ref{Name: "refs/heads/main", Old: id, New: id}, update.Ref{Name: "refs/tags/0", Old: id})
	g.Expect(err).NotTo(HaveOccurred())
	none()
	first()
	second, err := refs.Reserve(r, update.Ref{Name: "refs/tags/3", New: id})
	g.Expect(err).NotTo(HaveOccurred())
	second()
}
