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
	// manyLoose objects, manyPacks and manyRefs in files of their own are so many that packing them is worth its while.
	manyLoose, manyPacks, manyRefs = 512, 10, 256
	// wholeEvery is how long after all was packed anew this is done again.
	wholeEvery = 7 * 24 * time.Hour
	// unreachableAge is for how long what no ref leads to any more is kept. It must exceed what passes between the moments that an
	// object is written and that a ref names it.
	unreachableAge = "2.weeks.ago"
	// maintained is the file in a repository that is locked meanwhile. Its time is when all was packed anew, or was to be.
	maintained = "forgeplane-maintenance"
)

// Maintain keeps reading fast and the number of files small: it brings the commit-graph up to date, and packs refs and objects where
// there are many on their own. Once a week it packs everything anew, and then removes what has been found unreachable for two weeks.
// The repository can be read and pushed to meanwhile, and its processes are nice to others. It is ErrMaintained where somebody does
// the same. Whatever ends it, what it has done until then stays, and nothing is broken.
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
	// Packs of which each is at least twice as large as the next stay as they are, so no object is packed often.
	return r.repack(ctx, "--geometric=2")
}

// lock opens the file that is locked while the repository is maintained. The lock ends with the process.
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

// unlock does not leave it to the end of the last copy: a process that is just being started has one for a moment.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

// packWhole packs everything anew. What fails is not tried again before its time comes again: it may take long.
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
	// First of all, that it has no commit in it which is removed.
	if err := r.graph(ctx, "--split=replace"); err != nil {
		return err
	}
	if err := r.freshen(); err != nil {
		return err
	}
	return r.repack(ctx, "--cruft", "--cruft-expiration="+unreachableAge)
}

// repack packs objects and removes what is packed otherwise.
func (r *Repository) repack(ctx context.Context, how ...string) error {
	defer r.Evict()
	release, err := r.hold()
	defer release()
	if err != nil {
		return fmt.Errorf("holding the directories of objects: %w", err)
	}
	return r.maintain(ctx, append([]string{"repack", "-d", "-n", "--quiet"}, how...)...)
}

// hold has a file in each directory of loose objects, until release is called. In the end of a repack Git removes those that are
// empty, also such as a push has just made for objects that it is about to put there, and the push fails.
func (r *Repository) hold() (release func(), err error) {
	var held []string
	release = func() {
		for _, name := range held {
			_ = os.Remove(name) // what stays is stale one day
		}
	}
	for n := range 256 {
		dir := filepath.Join(r.dir, "objects", fmt.Sprintf("%02x", n))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return release, err
		}
		name := filepath.Join(dir, "tmp_obj_maintenance") // as temporary files are called
		held = append(held, name)
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			return release, err
		}
	}
	return release, nil
}

// graph brings the commit-graph up to date. Files of it that somebody has just looked up stay for a while.
func (r *Repository) graph(ctx context.Context, split string) error {
	return r.maintain(ctx, "commit-graph", "write", "--reachable", split, "--expire-time=1.hour.ago", "--changed-paths", maxNewFilters, "--no-progress")
}

// maxNewFilters bounds the time for what tells the paths that commits change: the rest has it another time.
const maxNewFilters = "--max-new-filters=20000"

// freshen makes all packs young. Git takes the age of a pack for that of the objects in it, so what is found unreachable would be
// removed at once, which somebody may just be about to name again. Objects that were found before are in packs that keep their ages.
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

// clutter is what makes a repository slow.
type clutter struct{ loose, packs, refs int }

// clutter counts files, without a process.
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

// sidecars are the files that go with a pack and its index.
var sidecars = []string{".pack", ".rev", ".bitmap", ".mtimes"}

// orphaned reports whether a path in a repository is that of a pack without an index, which nobody finds: it was being put into
// place or taken away when a process was killed.
func (r *Repository) orphaned(path string) bool {
	name, ext := strings.TrimSuffix(path, filepath.Ext(path)), filepath.Ext(path)
	if !strings.HasPrefix(path, "objects/pack/pack-") || !slices.Contains(sidecars, ext) {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.dir, name+".idx"))
	return errors.Is(err, fs.ErrNotExist)
}
