package familytest

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// held is a writer that reports each write, and then blocks until its time is over.
type held struct {
	seen chan<- struct{}
	over <-chan struct{}
}

func (h held) Write([]byte) (int, error) {
	h.seen <- struct{}{}
	<-h.over
	return 0, io.ErrClosedPipe
}

// Hold begins to write content of the repository of web to a client that reads nothing until release is called. Only one such write can run
// at a time. Hold returns repositories in which callers wait only briefly for their turn.
func (s *Shop) Hold(t *testing.T, write func(context.Context, *git.Repository, io.Writer) error) (repos *repository.Repositories, release func()) {
	t.Helper()
	one := fair.Limits{Total: 1, Wait: time.Millisecond}
	engine, err := git.NewEngine(t.Context(), git.Options{Slots: git.Slots{Archives: one, Blobs: one}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	repo, err := engine.Repository(filepath.Dir(s.Git.Dir()), filepath.Base(s.Git.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(fair.With(t.Context(), fair.Namespace("others")))
	seen, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- write(ctx, repo, held{seen, ctx.Done()}) }()
	select {
	case <-seen:
	case err := <-ended:
		t.Fatalf("nothing was written: %v", err)
	}
	return repository.New(engine, s.Catalog), func() {
		stop()
		if err := <-ended; err == nil {
			t.Error("a response without a reader was written")
		}
	}
}

// ExpectBusy expects that the requests are answered with 503 and a time to retry.
func (f *Forge) ExpectBusy(t *testing.T, requests ...string) {
	t.Helper()
	for _, r := range requests {
		answer := f.As("", r, "")
		want := `503 {"message":"The server is busy. Please try again later."}`
		if answer.String() != want || answer.Header.Get("Retry-After") != "10" {
			t.Errorf("%s: got %.900s, %v", r, answer, answer.Header)
		}
	}
}
