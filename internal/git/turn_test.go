package git

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestWhoListsMuchWaitsForTheirTurn(t *testing.T) {
	e, err := NewEngine(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "dir/a", "1")
	wide, last := c.Wide(t, 50_000)
	r, err := e.Repository(c.Dir, ".git")
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(maxWalks) {
		leave, err := e.walks.Enter(fair.With(t.Context(), fair.User(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(leave)
	}
	reads := map[string]func(context.Context) error{
		"all below a directory": func(ctx context.Context) error { _, err := r.Tree(ctx, commit, "", true); return err },
		"a large directory":     func(ctx context.Context) error { _, err := r.Tree(ctx, wide, "", false); return err },
		"an entry of it":        func(ctx context.Context) error { _, err := r.Entry(ctx, wide, last); return err },
	}
	for what, read := range reads {
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := read(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, while others walk: %v", what, err)
		}
		cancel()
	}
	if _, err := r.Tree(t.Context(), commit, "dir", false); err != nil {
		t.Errorf("a small directory, while others walk: %v", err)
	}
	e.walks = fair.New("walks", "walks", fair.Limits{Total: 1})
	for what, read := range reads {
		if err := read(t.Context()); err != nil {
			t.Errorf("%s, after that: %v", what, err)
		}
	}
}
