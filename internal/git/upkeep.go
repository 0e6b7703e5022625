package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Size returns the size of the repository on disk, in bytes.
func (r *Repository) Size(ctx context.Context) (int64, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	return size(ctx, r.dir)
}

func size(ctx context.Context, dir string) (int64, error) {
	var total int64
	err := walk(ctx, dir, func(_ string, info fs.FileInfo) error {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * 512 // the unit of stat(2), which does not depend on the file system
		} else {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// walk visits everything below a directory that others can write to. It ignores entries that disappear.
func walk(ctx context.Context, dir string, visit func(path string, info fs.FileInfo) error) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return visit(path, info)
	})
	if err != nil {
		return fmt.Errorf("walking through %s: %w", dir, err)
	}
	return nil
}

// Fsck checks that all objects that the refs need exist, and with full also that every object is intact, which reads all data. The error
// for a damaged repository is an *Error that describes the damage.
func (r *Repository) Fsck(ctx context.Context, full bool) error {
	args := []string{"fsck", "--no-dangling", "--no-progress"}
	if full {
		args = append(args, "--full")
	} else {
		args = append(args, "--connectivity-only")
	}
	c := r.command(args...)
	said := &tail{limit: keptStderr} // fsck reports missing objects on its standard output
	c.stdout = said
	err := r.run(ctx, c)
	if failed := (*Error)(nil); errors.As(err, &failed) {
		failed.Stderr = strings.TrimSpace(failed.Stderr + "\n" + said.String())
	}
	return err
}

// StaleAge exceeds the age of files of any push or fetch that still runs, because these have shorter timeouts.
const StaleAge = 24 * time.Hour

// CleanStale removes lock files, quarantines and unfinished packs of killed processes: those that have not changed for longer than age. It
// returns the number of removed files. The age must exceed the duration of any push.
func (r *Repository) CleanStale(ctx context.Context, age time.Duration) (int, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	removed, before := 0, time.Now().Add(-age)
	err := walk(ctx, r.dir, func(path string, info fs.FileInfo) error {
		inside := strings.TrimPrefix(path, r.dir+"/")
		if info.ModTime().After(before) || !temporary(inside) && !r.orphaned(inside) {
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

// temporary reports whether a path in a repository is one that git normally removes itself. No ref name has such an ending.
func temporary(path string) bool {
	name := filepath.Base(path)
	if strings.HasPrefix(path, "objects/") && (strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")) {
		return true
	}
	return strings.HasSuffix(name, ".lock") || path == "packed-refs.new"
}
