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

// Size returns how many bytes the repository takes on disk.
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
			total += stat.Blocks * 512 // the unit of stat(2), whatever the file system's
		} else {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// walk visits all that is below a directory that others write to meanwhile: what disappears does no harm.
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

// Fsck checks that all that the refs need is there, and with full also that every object is intact. The error of a damaged
// repository is an *Error that says what is wrong. A full check reads all data.
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

// StaleAge is older than what any push or fetch that still runs can have left: they are given less time than this.
const StaleAge = 24 * time.Hour

// CleanStale removes the lock files, quarantines and unfinished packs that processes have left which were killed: those
// that have not changed for longer than age. It returns how many there were. The age must exceed what any push takes.
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

// temporary reports whether a path in a repository is one of those that git removes itself when nothing goes wrong.
// No ref ends like that.
func temporary(path string) bool {
	name := filepath.Base(path)
	if strings.HasPrefix(path, "objects/") && (strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")) {
		return true
	}
	return strings.HasSuffix(name, ".lock") || path == "packed-refs.new"
}
