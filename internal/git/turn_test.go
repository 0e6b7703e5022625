package git

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

func TestWhoListsAllBelowADirectoryWaitsForHisTurn(t *testing.T) {
	e, err := NewEngine(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c := gittest.New(t, "sha1")
	commit := c.Commit(t, "dir/a", "1")
	r, err := e.Repository(c.Dir, ".git")
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for i := range int64(maxWalks) {
		leave, err := e.walks.Enter(fair.With(t.Context(), fair.User(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(leave)
	}
	if _, err := r.Tree(waiting, commit, "", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while others walk: %v", err)
	}
	e.walks = fair.New("walks", "walks", fair.Limits{Total: 1})
	if _, err := r.Tree(t.Context(), commit, "", true); err != nil {
		t.Errorf("after that: %v", err)
	}
}
