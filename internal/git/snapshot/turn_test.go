package snapshot_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

func TestTree_waitsForASlotIfItIsLarge(t *testing.T) {
	e, err := git.NewEngine(t.Context(), git.Options{})
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
	var leaves []func()
	for i := range int64(git.DefaultSlots().Walks.Total) {
		leave, err := e.Slots()[2].Enter(fair.With(t.Context(), fair.User(i)))
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	reads := map[string]func(context.Context) error{
		"all below a directory": func(ctx context.Context) error { _, err := snapshot.Tree(ctx, r, commit, "", true); return err },
		"a large directory":     func(ctx context.Context) error { _, err := snapshot.Tree(ctx, r, wide, "", false); return err },
		"an entry of it":        func(ctx context.Context) error { _, err := snapshot.Entry(ctx, r, wide, last); return err },
	}
	for what, read := range reads {
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := read(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, while others walk: %v", what, err)
		}
		cancel()
	}
	if _, err := snapshot.Tree(t.Context(), r, commit, "dir", false); err != nil {
		t.Errorf("a small directory, while others walk: %v", err)
	}
	for _, leave := range leaves {
		leave()
	}
	for what, read := range reads {
		if err := read(t.Context()); err != nil {
			t.Errorf("%s, after that: %v", what, err)
		}
	}
}
