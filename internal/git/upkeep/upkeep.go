package upkeep

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

// Size returns the size of the repository on disk, in bytes.
func Size(ctx context.Context, r *git.Repository) (int64, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	return disk.Size(ctx, r.Dir())
}

// Fsck checks that all objects that the refs need exist, and with full also that every object is intact, which reads all data. The error
// for a damaged repository is an *Error that describes the damage.
func Fsck(ctx context.Context, r *git.Repository, full bool) error {
	args := []string{"fsck", "--no-dangling", "--no-progress"}
	if full {
		args = append(args, "--full")
	} else {
		args = append(args, "--connectivity-only")
	}
	c := process.In(r.Dir(), args...)
	said := &process.Tail{Limit: process.KeptStderr} // fsck reports missing objects on its standard output
	c.Stdout = said
	err := r.Run(ctx, c)
	if failed := (*process.Error)(nil); errors.As(err, &failed) {
		failed.Stderr = strings.TrimSpace(failed.Stderr + "\n" + said.String())
	}
	return err
}

// StaleAge exceeds the age of files of any push or fetch that still runs, because these have shorter timeouts.
const StaleAge = 24 * time.Hour

// CleanStale removes lock files, quarantines and unfinished packs of killed processes: those that have not changed for longer than age. It
// returns the number of removed files. The age must exceed the duration of any push.
func CleanStale(ctx context.Context, r *git.Repository, age time.Duration) (int, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	removed, before := 0, time.Now().Add(-age)
	err := disk.Walk(ctx, r.Dir(), func(path string, info fs.FileInfo) error {
		inside := strings.TrimPrefix(path, r.Dir()+"/")
		if info.ModTime().After(before) || !disk.Temporary(inside) && !orphaned(r, inside) {
			return nil
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		removed++
		if info.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return removed, err
}
