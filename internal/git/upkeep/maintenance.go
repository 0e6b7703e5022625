// Package upkeep keeps repositories fast and small, and finds damage.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// ErrMaintained is returned by Maintain while another process maintains the repository.
var ErrMaintained = errors.New("another process maintains the repository")

const (
	// manyLoose, manyPacks and manyRefs are the numbers of loose objects, packs and loose refs from which on packing them is worthwhile.
	manyLoose, manyPacks, manyRefs = 512, 10, 256
	// wholeEvery is the interval at which everything is repacked.
	wholeEvery = 7 * 24 * time.Hour
	// unreachableAge is the time for which objects are kept after they became unreachable. It must exceed the time between writing an
	// object and creating a ref to it.
	unreachableAge = "2.weeks.ago"
	// maintained is the file in a repository that is locked during maintenance. Its modification time is the time of the last attempt to
	// repack everything.
	maintained = "forgeplane-maintenance"
)

// Maintain keeps reads fast and the number of files small: it updates the commit-graph, and packs loose refs and objects if there are many.
// Once a week it repacks everything, and removes objects that have been unreachable for two weeks. It leaves the largest packs that the
// repository shares with others as they are, unless they have unreachable objects. The repository can be read and pushed to meanwhile, and the processes have
// a low priority. The error is ErrMaintained if another process does the same. If it is interrupted, it
// keeps its results so far and leaves the repository intact.
func Maintain(ctx context.Context, r *git.Repository) error {
	if err := r.Check(); err != nil {
		return err
	}
	lock, err := lock(r)
	if err != nil {
		return fmt.Errorf("maintaining %s: %w", r.Dir(), err)
	}
	defer unlock(lock)
	info, err := lock.Stat()
	if err != nil {
		return fmt.Errorf("maintaining %s: %w", r.Dir(), err)
	}
	if time.Since(info.ModTime()) > wholeEvery {
		return packWhole(ctx, r)
	}
	found, err := countClutter(ctx, r)
	if err != nil {
		return err
	}
	if found.refs >= manyRefs {
		if err := maintain(ctx, r, "pack-refs", "--all"); err != nil {
			return err
		}
	}
	if err := WriteGraph(ctx, r, "--split"); err != nil {
		return err
	}
	both, err := shared(r)
	if err != nil {
		return err
	}
	both = kept(both)
	if found.loose < manyLoose && found.packs-len(both) < manyPacks {
		return nil
	}
	// A pack that is at least twice as large as the next one is not repacked, so no object is repacked often.
	return repack(ctx, r, append(keeping(both), "--geometric=2")...)
}

// lock opens and locks the file that marks maintenance. The lock ends with the process.
func lock(r *git.Repository) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.Dir(), maintained), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrMaintained
		}
		return nil, err
	}
	return f, nil
}

// unlock releases the lock explicitly, because a process that is just being started has a copy of the file for a moment.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

// packWhole repacks everything. If it fails, it is not retried before the next interval, because it can take long.
func packWhole(ctx context.Context, r *git.Repository) error {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(r.Dir(), maintained), now, now); err != nil {
		return fmt.Errorf("maintaining %s: %w", r.Dir(), err)
	}
	if _, err := CleanStale(ctx, r, StaleAge); err != nil {
		return err
	}
	if err := maintain(ctx, r, "pack-refs", "--all"); err != nil {
		return err
	}
	// The commit-graph must come first, so that it contains no commit that is about to be removed.
	if err := WriteGraph(ctx, r, "--split=replace"); err != nil {
		return err
	}
	if err := freshen(ctx, r); err != nil {
		return err
	}
	both, err := shared(r)
	if err == nil {
		// A shared pack with objects that became unreachable is replaced, because they would stay forever.
		both, err = Whole(ctx, r, both)
	}
	if err != nil {
		return err
	}
	return repack(ctx, r, append(keeping(kept(both)), "--cruft", "--cruft-expiration="+unreachableAge)...)
}

// repack packs objects and removes their other copies.
func repack(ctx context.Context, r *git.Repository, how ...string) error {
	defer r.Evict()
	release, err := hold(r)
	defer release()
	if err != nil {
		return fmt.Errorf("holding the directories of objects: %w", err)
	}
	return maintain(ctx, r, append([]string{"repack", "-d", "-n", "--quiet"}, how...)...)
}

// hold keeps a file in each directory of loose objects until release is called. At the end of a repack, Git removes empty directories, even
// if a push has just created one for its objects, and the push would fail.
func hold(r *git.Repository) (release func(), err error) {
	var held []string
	release = func() {
		for _, name := range held {
			_ = os.Remove(name) // leftovers become stale and are removed later
		}
	}
	for n := range 256 {
		dir := filepath.Join(r.Dir(), "objects", fmt.Sprintf("%02x", n))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return release, err
		}
		name := filepath.Join(dir, "tmp_obj_maintenance") // the prefix of git's temporary files
		held = append(held, name)
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			return release, err
		}
	}
	return release, nil
}

// WriteGraph updates the commit-graph. Its files are kept for a while, because another process may have just looked them up.
func WriteGraph(ctx context.Context, r *git.Repository, split string) error {
	return maintain(ctx, r, "commit-graph", "write", "--reachable", split, "--expire-time=1.hour.ago", "--changed-paths", maxNewFilters, "--no-progress")
}

// maxNewFilters limits the time for computing the filters of changed paths. The rest follows in later runs.
const maxNewFilters = "--max-new-filters=20000"

// freshen sets the modification time of all packs and loose objects to now. Git uses it as the age of the objects, so it would remove
// packed objects as soon as they become unreachable, even if a writer is about to refer to them again, and would never pack or remove old
// loose objects that are unreachable. Objects that became unreachable earlier are in packs that keep their ages.
func freshen(ctx context.Context, r *git.Repository) error {
	now := time.Now()
	err := disk.Walk(ctx, filepath.Join(r.Dir(), "objects"), func(path string, info fs.FileInfo) error {
		switch name, parent := info.Name(), filepath.Base(filepath.Dir(path)); {
		case info.IsDir() && strings.HasPrefix(name, "tmp_"):
			return fs.SkipDir
		case info.IsDir():
			return nil
		case parent == "pack" && strings.HasPrefix(name, "pack-") && strings.HasSuffix(name, ".pack"):
			if _, err := os.Lstat(strings.TrimSuffix(path, ".pack") + ".mtimes"); err == nil {
				return nil
			}
		case !object.IsID(parent + name):
			return nil
		}
		if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("making objects young: %w", err)
	}
	return nil
}

func maintain(ctx context.Context, r *git.Repository, args ...string) error {
	c := process.In(r.Dir(), args...)
	c.Nice = true
	return r.Run(ctx, c)
}

// clutter counts what makes a repository slow.
type clutter struct{ loose, packs, refs int }

// countClutter counts files, without starting a process.
func countClutter(ctx context.Context, r *git.Repository) (found clutter, err error) {
	err = disk.Walk(ctx, filepath.Join(r.Dir(), "objects"), func(path string, info fs.FileInfo) error {
		switch name, parent := info.Name(), filepath.Base(filepath.Dir(path)); {
		case info.IsDir() && strings.HasPrefix(name, "tmp_"):
			return fs.SkipDir
		case parent == "pack" && strings.HasSuffix(name, ".pack"):
			found.packs++
		case !info.IsDir() && len(parent) == 2 && object.IsID(parent+name):
			found.loose++
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	err = disk.Walk(ctx, filepath.Join(r.Dir(), "refs"), func(_ string, info fs.FileInfo) error {
		if !info.IsDir() {
			found.refs++
		}
		return nil
	})
	return found, err
}

// sidecars are the extensions of the files that belong to a pack and its index.
var sidecars = []string{".pack", ".rev", ".bitmap", ".mtimes"}

// orphaned reports whether a path in a repository belongs to a pack without an index, which nothing can use: a process was killed while it
// added or removed the pack.
func orphaned(r *git.Repository, path string) bool {
	name, ext := strings.TrimSuffix(path, filepath.Ext(path)), filepath.Ext(path)
	if !strings.HasPrefix(path, "objects/pack/pack-") || !slices.Contains(sidecars, ext) {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.Dir(), name+".idx"))
	return errors.Is(err, fs.ErrNotExist)
}
