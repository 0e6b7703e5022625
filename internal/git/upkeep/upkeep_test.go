package upkeep_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

func TestSize(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	small, err := upkeep.Size(t.Context(), gittest.Bare(t, c))
	if err != nil || small <= 0 {
		t.Fatalf("got %d, %v", small, err)
	}
	c.Commit(t, "big", gittest.Incompressible(1<<20))
	big, err := upkeep.Size(t.Context(), gittest.Bare(t, c))
	if err != nil || big-small < 1<<20 || big-small > 2<<20 {
		t.Errorf("a mebibyte more: %d after %d, %v", big, small, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := upkeep.Size(ctx, gittest.Bare(t, c)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFsck_findsDamage(t *testing.T) {
	for _, format := range gittest.Formats {
		t.Run(format, func(t *testing.T) {
			c := gittest.New(t, format)
			c.Commit(t, "a", "1")
			blob := c.Git(t, "rev-parse", "HEAD:a")
			tree := c.Git(t, "rev-parse", "HEAD^{tree}")
			for _, full := range []bool{false, true} {
				if err := upkeep.Fsck(t.Context(), gittest.Bare(t, c), full); err != nil {
					t.Errorf("intact: %v", err)
				}
				for object, mustNotice := range map[string]bool{tree: true, blob: full} {
					r := gittest.Bare(t, c)
					path := filepath.Join(r.Dir(), "objects", object[:2], object[2:])
					if err := os.Chmod(path, 0o644); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte("damaged"), 0o644); err != nil {
						t.Fatal(err)
					}
					err := upkeep.Fsck(t.Context(), r, full)
					if failed := (*process.Error)(nil); mustNotice && (!errors.As(err, &failed) || !strings.Contains(failed.Stderr, object)) {
						t.Errorf("full %t: got %v", full, err)
					}
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					if err := upkeep.Fsck(t.Context(), r, full); err == nil || !strings.Contains(err.Error(), "missing") {
						t.Errorf("full %t: got %v", full, err)
					}
				}
			}
		})
	}
}

func TestCleanStale(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "1")
	for _, branch := range []string{"pack/tmp_x", "objects/tmp_objdir-x", "ab/tmp_obj_x", "lock"} {
		c.Git(t, "branch", branch)
	}
	r := gittest.Bare(t, c)
	stale := []string{
		"HEAD.lock", "packed-refs.lock", "packed-refs.new", "config.lock", "refs/heads/main.lock", "refs/heads/ab/x.lock",
		"objects/tmp_objdir-incoming-abc/pack/pack-1.pack", "objects/pack/tmp_pack_x", "objects/pack/.tmp-1-pack-x.pack",
		"objects/info/commit-graphs/chain.lock", "objects/ab/tmp_obj_x",
		"objects/info/commit-graphs/tmp_graph_x", "objects/pack/pack-1.pack", "objects/pack/pack-1.mtimes",
	}
	touch := func(age time.Duration) {
		for _, path := range stale {
			full := filepath.Join(r.Dir(), path)
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for at := full; at != r.Dir(); at = filepath.Dir(at) {
				if err := os.Chtimes(at, time.Time{}, time.Now().Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	before := gittest.RefNames(t, r)
	touch(time.Minute)
	if n, err := upkeep.CleanStale(t.Context(), r, time.Hour); n != 0 || err != nil {
		t.Errorf("young ones: removed %d, %v", n, err)
	}
	touch(2 * time.Hour)
	if n, err := upkeep.CleanStale(t.Context(), r, time.Hour); n != len(stale) || err != nil {
		t.Errorf("removed %d of %d, %v", n, len(stale), err)
	}
	for _, path := range stale {
		if gittest.Exists(filepath.Join(r.Dir(), path)) {
			t.Errorf("%s is still there", path)
		}
	}
	if gittest.Exists(r.Dir() + "/objects/tmp_objdir-incoming-abc") {
		t.Error("the quarantine is still there")
	}
	if got := gittest.RefNames(t, r); !slices.Equal(got, before) || len(got) != 5 {
		t.Errorf("got %q, want %q", got, before)
	}
	if err := upkeep.Fsck(t.Context(), r, true); err != nil {
		t.Error(err)
	}
}
