package git

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
)

// ErrMaintained is returned by Maintain while another process maintains the repository.
var ErrMaintained = errors.New("another process maintains the repository")

const (
	// manyLoose, manyPacks and manyRefs are the numbers of loose objects, packs and loose refs from which on packing them is worthwhile.
	manyLoose, manyPacks, manyRefs = 512, 10, 256
	// wholeEvery is the interval at which everything is repacked.
	wholeEvery = 7 * 24 * time.Hour
	// unreachableAge is how long objects are kept after they became unreachable. It must exceed the time between writing an object and
	// creating a ref to it.
	unreachableAge = "2.weeks.ago"
	// maintained is the file in a repository that is locked during maintenance. Its modification time is the time of the last attempt to
	// repack everything.
	maintained = "forgeplane-maintenance"
)

// Maintain keeps reads fast and the number of files small: it updates the commit-graph, and packs loose refs and objects if there are many.
// Once a week it repacks everything, and removes objects that have been unreachable for two weeks. The repository can be read and pushed to
// meanwhile, and the processes have a low priority. The error is ErrMaintained if another process does the same. If it is interrupted, it
// keeps its results so far and leaves the repository intact.
func (r *Repository) Maintain(ctx context.Context) error {
	if err := r.Check(); err != nil {
		return err
	}
	lock, err := r.lock()
	if err != nil {
		return fmt.Errorf("maintaining %s: %w", r.dir, err)
	}
	defer unlock(lock)
	info, err := lock.Stat()
	if err != nil {
		return fmt.Errorf("maintaining %s: %w", r.dir, err)
	}
	if time.Since(info.ModTime()) > wholeEvery {
		return r.packWhole(ctx)
	}
	found, err := r.clutter(ctx)
	if err != nil {
		return err
	}
	if found.refs >= manyRefs {
		if err := r.maintain(ctx, "pack-refs", "--all"); err != nil {
			return err
		}
	}
	if err := r.graph(ctx, "--split"); err != nil {
		return err
	}
	if found.loose < manyLoose && found.packs < manyPacks {
		return nil
	}
	// A pack that is at least twice as large as the next one is not repacked, so no object is repacked often.
	return r.repack(ctx, "--geometric=2")
}

// lock opens and locks the file that marks maintenance. The lock ends with the process.
func (r *Repository) lock() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(r.dir, maintained), os.O_RDWR|os.O_CREATE, 0o644)
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
func (r *Repository) packWhole(ctx context.Context) error {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(r.dir, maintained), now, now); err != nil {
		return fmt.Errorf("maintaining %s: %w", r.dir, err)
	}
	if _, err := r.CleanStale(ctx, StaleAge); err != nil {
		return err
	}
	if err := r.maintain(ctx, "pack-refs", "--all"); err != nil {
		return err
	}
	// The commit-graph must come first, so that it contains no commit that is about to be removed.
	if err := r.graph(ctx, "--split=replace"); err != nil {
		return err
	}
	if err := r.freshen(); err != nil {
		return err
	}
	return r.repack(ctx, "--cruft", "--cruft-expiration="+unreachableAge)
}

// repack packs objects and removes their other copies.
func (r *Repository) repack(ctx context.Context, how ...string) error {
	defer r.Evict()
	release, err := r.hold()
	defer release()
	if err != nil {
		return fmt.Errorf("holding the directories of objects: %w", err)
	}
	return r.maintain(ctx, append([]string{"repack", "-d", "-n", "--quiet"}, how...)...)
}

// hold keeps a file in each directory of loose objects until release is called. At the end of a repack, Git removes empty directories, even
// if a push has just created one for its objects, and the push would fail.
func (r *Repository) hold() (release func(), err error) {
	var held []string
	release = func() {
		for _, name := range held {
			_ = os.Remove(name) // leftovers become stale and are removed later
		}
	}
	for n := range 256 {
		dir := filepath.Join(r.dir, "objects", fmt.Sprintf("%02x", n))
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

// graph updates the commit-graph. Its files are kept for a while, because another process may have just looked them up.
func (r *Repository) graph(ctx context.Context, split string) error {
	return r.maintain(ctx, "commit-graph", "write", "--reachable", split, "--expire-time=1.hour.ago", "--changed-paths", maxNewFilters, "--no-progress")
}

// maxNewFilters limits the time for computing the filters of changed paths. The rest follows in later runs.
const maxNewFilters = "--max-new-filters=20000"

// freshen sets the modification time of all packs to now. Git uses the age of a pack as the age of its objects, so it would remove objects
// as soon as they become unreachable, even if somebody is about to refer to them again. Objects that became unreachable earlier are in
// packs that keep their ages.
func (r *Repository) freshen() error {
	packs, err := filepath.Glob(filepath.Join(r.dir, "objects/pack/pack-*.pack"))
	if err != nil {
		return fmt.Errorf("listing packs: %w", err)
	}
	now := time.Now()
	for _, pack := range packs {
		if _, err := os.Lstat(strings.TrimSuffix(pack, ".pack") + ".mtimes"); err == nil {
			continue
		}
		if err := os.Chtimes(pack, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making a pack young: %w", err)
		}
	}
	return nil
}

func (r *Repository) maintain(ctx context.Context, args ...string) error {
	c := r.command(args...)
	c.nice = true
	return r.run(ctx, c)
}

// clutter counts what makes a repository slow.
type clutter struct{ loose, packs, refs int }

// clutter counts files, without starting a process.
func (r *Repository) clutter(ctx context.Context) (found clutter, err error) {
	err = walk(ctx, filepath.Join(r.dir, "objects"), func(path string, info fs.FileInfo) error {
		switch name, parent := info.Name(), filepath.Base(filepath.Dir(path)); {
		case info.IsDir() && strings.HasPrefix(name, "tmp_"):
			return fs.SkipDir
		case parent == "pack" && strings.HasSuffix(name, ".pack"):
			found.packs++
		case !info.IsDir() && len(parent) == 2 && IsObjectID(parent+name):
			found.loose++
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	err = walk(ctx, filepath.Join(r.dir, "refs"), func(_ string, info fs.FileInfo) error {
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
func (r *Repository) orphaned(path string) bool {
	name, ext := strings.TrimSuffix(path, filepath.Ext(path)), filepath.Ext(path)
	if !strings.HasPrefix(path, "objects/pack/pack-") || !slices.Contains(sidecars, ext) {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.dir, name+".idx"))
	return errors.Is(err, fs.ErrNotExist)
}
