package git_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/test/patience"
)

// retire retires a repository.
func retire(t *testing.T, r *git.Repository, by string) {
	t.Helper()
	defer closeFence(t, r)()
	NewWithT(t).Expect(r.Retire(by)).To(Succeed())
}

// soon returns a context that ends before anybody gets tired of waiting.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestRetire_refusesWritesInAllProcesses(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	prepared, err := other.PrepareWrite()
	g.Expect(err).NotTo(HaveOccurred())
	defer prepared.End()
	retire(t, one, "move-1")
	g.Expect(prepared.Begin()).To(MatchError(git.ErrClosed))
	_, _, err = other.BeginWrite(t.Context())
	g.Expect(err).To(MatchError(git.ErrClosed))
	_, _, err = one.BeginYielding(t.Context())
	g.Expect(err).To(MatchError(git.ErrClosed))
	g.Expect(other.Closed()).To(BeTrue())
	g.Expect(other.RetiredBy()).To(Equal("move-1"))

	retire(t, other, "move-2")
	g.Expect(one.RetiredBy()).To(Equal("move-2"))
	defer closeFence(t, one)()
	g.Expect(one.Reinstate("move-1")).To(MatchError(ContainSubstring(`by "move-2", and not by "move-1"`)))
	g.Expect(one.RetiredBy()).To(Equal("move-2"))
}

func TestReinstate_letsWritesBegin(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	retire(t, one, "move-1")
	open := closeFence(t, one)
	for range 2 {
		g.Expect(one.Reinstate("move-1")).To(Succeed())
	}
	open()
	g.Expect(other.Closed()).To(BeFalse())
	beginWrite(t, other)()
}

func TestRetire_needsAName(t *testing.T) {
	r, _ := fenced(t)
	for _, by := range []string{"", "a\x00b"} {
		NewWithT(t).Expect(r.Retire(by)).NotTo(Succeed())
	}
	beginWrite(t, r)()
}

func TestRetire_survivesAnInterruption(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	g.Expect(os.Symlink("move-0", filepath.Join(r.Dir(), "forgeplane-retired.lock"))).To(Succeed())
	beginWrite(t, r)()
	retire(t, r, "move-1")
	g.Expect(r.RetiredBy()).To(Equal("move-1"))
	g.Expect(gittest.Exists(filepath.Join(r.Dir(), "forgeplane-retired.lock"))).To(BeFalse())
}

func TestRetired_canBeRemovedLikeAnyOther(t *testing.T) {
	r, _ := fenced(t)
	retire(t, r, "move-1")
	NewWithT(t).Expect(r.Remove(t.Context())).To(Succeed())
}

func TestRemoveRetired_neverRemovesALiveCopy(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).NotTo(Succeed())
	retire(t, r, "move-2")
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).To(MatchError(ContainSubstring("move-2")))
	g.Expect(r.Check()).To(Succeed())
	g.Expect(r.RemoveRetired(t.Context(), "move-2")).To(Succeed())
	g.Expect(gittest.Entries(t, filepath.Dir(r.Dir()))).To(BeEmpty())
	g.Expect(r.RemoveRetired(t.Context(), "move-2")).To(Succeed(), "nothing is there")
}

func TestRemoveRetiredIf_asksWhileTheRepositoryIsClosed(t *testing.T) {
	g := NewWithT(t)
	r, other := fenced(t)
	retire(t, r, "move-1")
	refused := errors.New("refused")
	g.Expect(r.RemoveRetiredIf(t.Context(), "move-1", func(ctx context.Context) error {
		_, err := other.CloseSoon(ctx)
		g.Expect(err).To(MatchError(git.ErrClosed))
		return refused
	})).To(MatchError(refused))
	g.Expect(r.RetiredBy()).To(Equal("move-1"))
	open, err := other.CloseSoon(t.Context())
	g.Expect(err).NotTo(HaveOccurred(), "it is open again")
	open()
}

func TestRemoveRetired_canBeRepeated(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	retire(t, r, "move-1")
	// It was interrupted while it emptied the trash.
	g.Expect(os.MkdirAll(r.Dir()+".trash/1", 0o755)).To(Succeed())
	g.Expect(os.Rename(r.Dir(), r.Dir()+".trash/1/git")).To(Succeed())
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).To(Succeed())
	g.Expect(gittest.Entries(t, filepath.Dir(r.Dir()))).To(BeEmpty())
}

func TestRemoveRetired_inTwoProcesses(t *testing.T) {
	g := NewWithT(t)
	r, other := fenced(t)
	retire(t, r, "move-1")
	_, end, err := r.BeginRead(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 2)
	for _, one := range []*git.Repository{r, other} {
		go func() { done <- one.RemoveRetired(t.Context(), "move-1") }()
	}
	g.Consistently(done).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "both wait")
	end()
	for range cap(done) {
		g.Eventually(done).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	}
	g.Expect(gittest.Entries(t, filepath.Dir(r.Dir()))).To(BeEmpty())
}

func TestRemoveRetired_ofAMissingStorage(t *testing.T) {
	r := gittest.Repository(t, gittest.NewEngine(t), filepath.Join(t.TempDir(), "gone"), "a.git")
	NewWithT(t).Expect(r.RemoveRetired(t.Context(), "move-1")).To(MatchError(git.ErrStorageMissing))
}

func TestRemoveRetired_waitsForReaders(t *testing.T) {
	g := NewWithT(t)
	r, other := fenced(t)
	retire(t, r, "move-1")
	_, end, err := other.BeginRead(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	err = r.RemoveRetired(soon(t), "move-1")
	g.Expect(err).To(And(MatchError(context.DeadlineExceeded), MatchError(ContainSubstring("still being read"))))
	g.Expect(r.Check()).To(Succeed())
	g.Expect(r.RetiredBy()).To(Equal("move-1"))
	done := make(chan error, 1)
	go func() { done <- r.RemoveRetired(t.Context(), "move-1") }()
	g.Consistently(done).WithTimeout(100 * time.Millisecond).ShouldNot(Receive())
	end()
	g.Eventually(done).WithTimeout(patience.Wait).Should(Receive(BeNil()))
	_, _, err = other.BeginRead(t.Context())
	g.Expect(err).To(MatchError(git.ErrNotFound))
}

func TestRemoveRetired_waitsForPooledReaders(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	bare := gittest.Bare(t, c)
	storage, name := filepath.Dir(bare.Dir()), filepath.Base(bare.Dir())
	own := gittest.Repository(t, gittest.EngineOf(t, git.Options{ReaderIdle: time.Hour}), storage, name)
	other := gittest.Repository(t, gittest.EngineOf(t, git.Options{ReaderIdle: time.Hour}), storage, name)
	for _, r := range []*git.Repository{own, other} {
		g.Expect(r.Objects(t.Context(), id)).To(HaveExactElements(HaveField("ID", id)))
	}
	retire(t, own, "move-1")
	g.Expect(own.RemoveRetired(soon(t), "move-1")).To(MatchError(context.DeadlineExceeded), "another process has a reader")
	other.Evict()
	g.Expect(own.RemoveRetired(t.Context(), "move-1")).To(Succeed(), "its own readers end")
}

func TestRemoveRetired_waitsForAClone(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", gittest.Incompressible(4<<20))
	r := gittest.Bare(t, c)
	out, in := io.Pipe()
	served := make(chan error, 1)
	go func() {
		want := "0032want " + id + "\n00000009done\n"
		served <- transfer.Serve(t.Context(), r, transfer.ServeOptions{Service: transfer.UploadPack, Stdin: strings.NewReader(want), Stdout: in})
		in.Close()
	}()
	_, err := io.ReadFull(out, make([]byte, 64<<10)) // the client is slow to read the rest
	g.Expect(err).NotTo(HaveOccurred())
	retire(t, r, "move-1")
	g.Expect(r.RemoveRetired(soon(t), "move-1")).To(MatchError(context.DeadlineExceeded))
	rest, err := io.ReadAll(out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(rest)).To(BeNumerically(">", 4<<20-64<<10))
	g.Expect(<-served).To(Succeed())
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).To(Succeed())
}

func TestRemoveRetired_waitsForReadersOfAJoinedRepository(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	joined, remove, err := gittest.NewEngine(t).Join(t.Context(), "sha1", r)
	g.Expect(err).NotTo(HaveOccurred())
	defer remove()
	g.Expect(joined.Objects(t.Context(), id)).To(HaveExactElements(HaveField("ID", id)))
	retire(t, r, "move-1")
	g.Expect(r.RemoveRetired(soon(t), "move-1")).To(MatchError(context.DeadlineExceeded))
	remove()
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).To(Succeed())
}

func TestRemoveRetired_waitsForAGitThatOutlivesItsProcess(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	r := gittest.Bare(t, c)
	begun, release := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "release")
	binary := gittest.Script(t, `case "$*" in *for-each-ref*)
	trap '' TERM
	echo > "`+begun+`"
	while [ ! -e "`+release+`" ]; do sleep 0.01; done;;
esac
exec git "$@"`)
	p := startProcess(t, "read", r, binary, "")
	g.Eventually(begun).WithTimeout(patience.Wait).Should(BeAnExistingFile())
	p.kill()
	retire(t, r, "move-1")
	g.Expect(r.RemoveRetired(soon(t), "move-1")).To(MatchError(context.DeadlineExceeded))
	g.Expect(os.WriteFile(release, nil, 0o644)).To(Succeed())
	g.Expect(r.RemoveRetired(t.Context(), "move-1")).To(Succeed())
}

// A read with a pooled reader must not cost more because readers hold a lock.
func BenchmarkObjects_withAPooledReader(b *testing.B) {
	c := gittest.New(b, "sha1")
	id := c.Commit(b, "a", "1")
	r := gittest.Bare(b, c)
	for b.Loop() {
		if _, err := r.Objects(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBeginRead(b *testing.B) {
	c := gittest.New(b, "sha1")
	c.Commit(b, "a", "1")
	r := gittest.Bare(b, c)
	for b.Loop() {
		_, end, err := r.BeginRead(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		end()
	}
}
