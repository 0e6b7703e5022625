package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

func TestBlob_hasTheCommittedContent(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, format)
			large := strings.Repeat("0123456789abcde\n", 17<<16)
			for path, content := range map[string]string{"empty": "", "small": "a\x00b\n", "large": large} {
				c.Commit(t, path, content)
			}
			r := gittest.Bare(t, c)
			for path, content := range map[string]string{"empty": "", "small": "a\x00b\n", "large": large} {
				for range 2 { // the second time, from memory
					b, err := snapshot.OpenBlob(t.Context(), r, c.Git(t, "rev-parse", "HEAD:"+path))
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(b.Size).To(Equal(int64(len(content))))
					g.Expect(b.SHA256(t.Context())).To(Equal(fmt.Sprintf("%x", sha256.Sum256([]byte(content)))))
					var out bytes.Buffer
					g.Expect(b.Write(t.Context(), &out)).To(Succeed())
					g.Expect(bytes.Equal(out.Bytes(), []byte(content))).To(BeTrue(), "%s", path) // the content is too long to print
				}
			}
			for _, name := range []string{c.Git(t, "rev-parse", "HEAD"), c.Git(t, "rev-parse", "HEAD^{tree}"), strings.Repeat("0", 40), "HEAD:small", "-p"} {
				_, err := snapshot.OpenBlob(t.Context(), r, name)
				g.Expect(err).To(MatchError(git.ErrObjectNotFound), "%s", name)
			}
		})
	}
}

// full is a disk.
type full struct{}

var errFull = errors.New("there is no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestBlob_endsWithItsReceiver(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "large", strings.Repeat("0123456789abcde\n", 17<<16))
	r := gittest.Bare(t, c)
	b, err := snapshot.OpenBlob(t.Context(), r, c.Git(t, "rev-parse", "HEAD:large"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Write(t.Context(), full{})).NotTo(Succeed())
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone away")
	cancel(gone)
	g.Expect(b.Write(ctx, &bytes.Buffer{})).To(MatchError(gone))
}

func TestBlob_waitsForASlotIfItIsLarge(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "small", "x")
	c.Commit(t, "large", strings.Repeat("0123456789abcde\n", 17<<16))
	e, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Blobs: fair.Limits{Total: 1, Wait: 50 * time.Millisecond}}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	small, err := snapshot.OpenBlob(t.Context(), r, c.Git(t, "rev-parse", "HEAD:small"))
	g.Expect(err).NotTo(HaveOccurred())
	large, err := snapshot.OpenBlob(t.Context(), r, c.Git(t, "rev-parse", "HEAD:large"))
	g.Expect(err).NotTo(HaveOccurred())
	first := turnstile{make(chan struct{}, 17<<20), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- large.Write(t.Context(), first) }()
	<-first.seen
	var out bytes.Buffer
	g.Expect(large.Write(t.Context(), &out)).To(MatchError(process.ErrBusy))
	_, err = large.SHA256(t.Context())
	g.Expect(err).To(MatchError(process.ErrBusy))
	g.Expect(out.Len()).To(BeZero())
	g.Expect(small.Write(t.Context(), &out)).To(Succeed())
	close(first.pass)
	g.Expect(<-ended).To(Succeed())
	out.Reset()
	g.Expect(large.Write(t.Context(), &out)).To(Succeed())
	g.Expect(out.Len()).To(Equal(17 << 20))
}

func TestBlob_isWrittenFromMemoryIfThereIsRoom(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	content := strings.Repeat("0123456789abcde\n", 2<<16)
	c.Commit(t, "middling", content)
	c.Commit(t, "small", "x")
	const room = 3 << 20 // room for one
	e, err := git.NewEngine(t.Context(), git.Options{
		Memory: fair.NewMemory("test", fair.Limits{Total: room, Wait: time.Minute}),
		Slots:  git.Slots{Blobs: fair.Limits{Total: 1, Wait: 50 * time.Millisecond}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(e.Close)
	r := gittest.Repository(t, e, filepath.Dir(gittest.Bare(t, c).Dir()), "b.git")
	blob := func(path string) snapshot.Blob {
		b, err := snapshot.OpenBlob(t.Context(), r, c.Git(t, "rev-parse", "HEAD:"+path))
		g.Expect(err).NotTo(HaveOccurred())
		return b
	}
	middling := blob("middling")
	ended := make(chan error, 2)
	var held [2]turnstile // one blob from memory, and one with the slot
	for i := range held {
		held[i] = turnstile{make(chan struct{}, len(content)), make(chan struct{})}
		go func() { ended <- middling.Write(t.Context(), held[i]) }()
		<-held[i].seen
	}
	var out bytes.Buffer
	g.Expect(middling.Write(t.Context(), &out)).To(MatchError(process.ErrBusy))
	g.Expect(blob("small").Write(t.Context(), &out)).To(Succeed())
	for i := range held {
		close(held[i].pass)
	}
	for range held {
		g.Expect(<-ended).To(Succeed())
	}
	out.Reset()
	g.Expect(middling.Write(t.Context(), &out)).To(Succeed())
	if out.String() != content {
		t.Errorf("got %d bytes that are not the content", out.Len())
	}
}

func TestRemove_forgetsResults(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "secret", "content")
	id := c.Git(t, "rev-parse", "HEAD:secret")
	r := gittest.Bare(t, c)
	_, err := snapshot.OpenBlob(t.Context(), r, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(snapshot.Tree(t.Context(), r, commit, "", true)).To(HaveLen(1))
	g.Expect(r.Remove(t.Context())).To(Succeed())
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	_, err = snapshot.OpenBlob(t.Context(), r, id)
	g.Expect(err).To(MatchError(git.ErrObjectNotFound))
	_, err = snapshot.Tree(t.Context(), r, commit, "", true)
	g.Expect(err).To(MatchError(git.ErrObjectNotFound))
}
