package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// fenced returns handles of two processes on an empty repository.
func fenced(t *testing.T) (one, other *git.Repository) {
	t.Helper()
	storage := t.TempDir()
	one, other = gittest.Repository(t, gittest.NewEngine(t), storage, "a.git"), gittest.Repository(t, gittest.NewEngine(t), storage, "a.git")
	NewWithT(t).Expect(one.Init(t.Context(), git.InitOptions{})).To(Succeed())
	return one, other
}

func beginWrite(t *testing.T, r *git.Repository) (end func()) {
	t.Helper()
	_, end, err := r.BeginWrite(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return end
}

func closeFence(t *testing.T, r *git.Repository) (open func()) {
	t.Helper()
	open, err := r.Close(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return open
}

func TestFence_waitsForWritesAndRefusesOthers(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	first, second := beginWrite(t, one), beginWrite(t, other)
	first()
	first() // the second call has no effect

	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := one.Close(impatient)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	third := beginWrite(t, one) // a failed Close has no effect

	done := make(chan func(), 1)
	go func() {
		open, err := other.Close(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		done <- open
	}()
	g.Eventually(one.Closed).Should(BeTrue())
	_, _, err = one.BeginWrite(t.Context())
	g.Expect(err).To(MatchError(git.ErrClosed))
	second()
	g.Consistently(done).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "a write runs")
	third()
	var open func()
	g.Eventually(done).Should(Receive(&open))
	_, err = one.Close(t.Context())
	g.Expect(err).To(MatchError(git.ErrClosed), "it is closed already")
	g.Expect(one.Closed()).To(BeTrue())
	open()
	open() // the second call has no effect
	g.Expect(one.Closed()).To(BeFalse())
	beginWrite(t, other)()
	closeFence(t, one)()
}

func TestFence_letsAPreparedWriteBeginWhenItIsItsTurn(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	w, err := one.PrepareWrite()
	g.Expect(err).NotTo(HaveOccurred())
	defer w.End()
	open := closeFence(t, other)
	g.Expect(w.Begin()).To(MatchError(git.ErrClosed), "it has not begun, so nobody waits for it")
	open()
	g.Expect(w.Begin()).To(Succeed())
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = other.Close(impatient)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	w.End()
	closeFence(t, other)()
}

func TestFence_refusesWritesOfARepositoryThatIsNotInItsPlaceAnyMore(t *testing.T) {
	for name, move := range map[string]func(g Gomega, r *git.Repository){
		"moved": func(g Gomega, r *git.Repository) { g.Expect(os.Rename(r.Dir(), r.Dir()+".moved")).To(Succeed()) },
		"another one in its place": func(g Gomega, r *git.Repository) {
			g.Expect(os.Rename(r.Dir(), r.Dir()+".moved")).To(Succeed())
			g.Expect(r.Init(context.Background(), git.InitOptions{})).To(Succeed())
			_, end, err := r.BeginWrite(context.Background())
			g.Expect(err).NotTo(HaveOccurred())
			end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			one, other := fenced(t)
			w, err := one.PrepareWrite()
			g.Expect(err).NotTo(HaveOccurred())
			defer w.End()
			open := closeFence(t, other)
			move(g, other)
			open()
			g.Expect(w.Begin()).To(MatchError(git.ErrClosed))
		})
	}
}

func TestFence_ofNoRepository(t *testing.T) {
	g := NewWithT(t)
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "a.git")
	_, _, err := r.BeginWrite(t.Context())
	g.Expect(err).To(MatchError(git.ErrNotFound))
	_, err = r.Close(t.Context())
	g.Expect(err).To(MatchError(git.ErrNotFound))
	g.Expect(r.Closed()).To(BeFalse())
	r = gittest.Repository(t, gittest.NewEngine(t), filepath.Join(t.TempDir(), "unmounted"), "a.git")
	_, _, err = r.BeginWrite(t.Context())
	g.Expect(err).To(MatchError(git.ErrStorageMissing))
}

func TestBeginYielding_endsWhenTheRepositoryIsClosed(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	_, done, err := one.BeginYielding(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	done()
	yielding, end, err := one.BeginYielding(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	isClosed := make(chan error, 1)
	go func() {
		_, err := other.Close(t.Context())
		isClosed <- err
	}()
	<-yielding.Done()
	g.Expect(context.Cause(yielding)).To(MatchError(git.ErrClosed))
	g.Consistently(isClosed).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "it still runs")
	end()
	g.Eventually(isClosed).Should(Receive(BeNil()))
	_, _, err = one.BeginYielding(t.Context())
	g.Expect(errors.Is(err, git.ErrClosed)).To(BeTrue())
}

func BenchmarkBeginWrite(b *testing.B) {
	r := gittest.Repository(b, gittest.NewEngine(b), b.TempDir(), "a.git")
	if err := r.Init(b.Context(), git.InitOptions{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, end, err := r.BeginWrite(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		end()
	}
}
