package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Errors about a repository as a whole.
var (
	// ErrStorageMissing: the storage directory is not there, so nothing can be said about the repository.
	ErrStorageMissing = errors.New("the repository storage is not there")
	// ErrNotFound: the storage is there, and has no repository at the path.
	ErrNotFound = errors.New("there is no such repository")
	// ErrNotRepository: something else, or the damaged rest of a repository, is at the path.
	ErrNotRepository = errors.New("this is not a Git repository")
)

// Repository is a bare repository on a storage. Next to its directory, the names that end in ".new" and ".trash" instead
// are its own too: it is made in the one and removed by way of the other, so that it is there as a whole or not at all.
type Repository struct {
	engine  *Engine
	storage string
	dir     string
}

// Repository returns a handle on the repository at path, a relative path without "..", in the directory storage, which is
// absolute. The repository need not exist.
func (e *Engine) Repository(storage, path string) (*Repository, error) {
	if !filepath.IsAbs(storage) {
		return nil, fmt.Errorf("storage %q is not an absolute path", storage)
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
		return nil, fmt.Errorf("repository path %q does not lie inside of the storage", path)
	}
	storage = filepath.Clean(storage)
	return &Repository{engine: e, storage: storage, dir: filepath.Join(storage, path)}, nil
}

// Dir returns the directory, an absolute path.
func (r *Repository) Dir() string { return r.dir }

// Check returns nil if the repository is there, and otherwise ErrStorageMissing, ErrNotFound, ErrNotRepository or a
// failure to look. It starts no process, and does not look inside for damage: see Fsck.
func (r *Repository) Check() error {
	if err := r.check(); err != nil {
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	return nil
}

func (r *Repository) check() error {
	if isDir, err := directory(r.storage); err != nil {
		return err
	} else if !isDir {
		return ErrStorageMissing
	}
	if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	} else if err != nil {
		return err
	}
	for _, part := range []string{"objects", "refs"} {
		if isDir, err := directory(filepath.Join(r.dir, part)); err != nil {
			return err
		} else if !isDir {
			return ErrNotRepository
		}
	}
	for _, part := range []string{"HEAD", "config"} {
		if _, err := os.Lstat(filepath.Join(r.dir, part)); errors.Is(err, fs.ErrNotExist) {
			return ErrNotRepository
		} else if err != nil {
			return err
		}
	}
	return nil
}

func directory(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// command is one that works on the repository, which is found nowhere but in its directory.
func (r *Repository) command(args ...string) command {
	return command{args: args, dir: r.dir, env: []string{"GIT_DIR=."}}
}

// run runs a command as the engine does. It has a time limit where ctx has none.
func (r *Repository) run(ctx context.Context, c command) error {
	if err := r.Check(); err != nil {
		return err
	}
	ctx, cancel := r.engine.limited(ctx)
	defer cancel()
	return r.engine.run(ctx, c)
}

func (r *Repository) output(ctx context.Context, limit int, c command) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := r.engine.limited(ctx)
	defer cancel()
	return r.engine.output(ctx, limit, c)
}

func (e *Engine) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.patience, fmt.Errorf("the command took longer than %s: %w", e.patience, ErrBusy))
}

// InitOptions say what Init makes.
type InitOptions struct {
	// DefaultBranch is the branch that HEAD names. "main" if empty.
	DefaultBranch string
	// ObjectFormat is "sha1" or "sha256". "sha1" if empty.
	ObjectFormat string
}

// Init makes an empty repository. If there is one already it does nothing, whatever the options say.
func (r *Repository) Init(ctx context.Context, o InitOptions) error {
	return r.create(func(staged *Repository) error { return staged.init(ctx, o) })
}

func (r *Repository) init(ctx context.Context, o InitOptions) error {
	if o.DefaultBranch == "" {
		o.DefaultBranch = "main"
	}
	if o.ObjectFormat == "" {
		o.ObjectFormat = "sha1"
	}
	if err := CheckRefName("refs/heads/" + o.DefaultBranch); err != nil {
		return err
	}
	kind := layoutKind{r.storage, o.ObjectFormat}
	if known, ok := r.engine.layouts.Load(kind); ok {
		return known.(layout).write(r.dir, o.DefaultBranch)
	}
	err := r.engine.run(ctx, command{args: []string{
		"init", "--quiet", "--bare", "--template=", "--object-format=" + o.ObjectFormat,
		"--initial-branch=" + o.DefaultBranch, "--end-of-options", r.dir,
	}})
	if err != nil {
		return err
	}
	made, err := readLayout(r.dir)
	if err != nil {
		return err
	}
	r.engine.layouts.Store(kind, made)
	return nil
}

// create lets fill make the repository in a staging directory, and then moves it into place. Whatever goes wrong,
// nothing is left in place; what a crash leaves in the staging directory is removed by the next attempt.
func (r *Repository) create(fill func(staged *Repository) error) error {
	switch err := r.check(); {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound):
	case errors.Is(err, ErrNotRepository) && os.Remove(r.dir) == nil: // it was an empty directory
	default:
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o755); err != nil {
		return fmt.Errorf("making the parent of %s: %w", r.dir, err)
	}
	staging := r.dir + ".new"
	if err := r.discard(staging); err != nil {
		return err
	}
	err := r.stage(staging, fill)
	if err == nil && os.Remove(staging) == nil {
		return nil // only the empty directory was left
	}
	return errors.Join(err, r.discard(staging))
}

// stage works in a directory of its own name. Another process that does the same at the same time, such as a leader that
// has just been superseded, can take that away in the middle, and only make it fail.
func (r *Repository) stage(staging string, fill func(staged *Repository) error) error {
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return fmt.Errorf("staging %s: %w", r.dir, err)
	}
	own, err := os.MkdirTemp(staging, "")
	if err != nil {
		return fmt.Errorf("staging %s: %w", r.dir, err)
	}
	staged := &Repository{engine: r.engine, storage: r.storage, dir: filepath.Join(own, "git")}
	if err := fill(staged); err != nil {
		return err
	}
	if err := staged.Check(); err != nil {
		return err
	}
	if err := syncTree(staged.dir); err != nil {
		return err
	}
	if err := os.Rename(staged.dir, r.dir); err != nil {
		return fmt.Errorf("putting %s into place: %w", r.dir, err)
	}
	_ = os.Remove(own)
	return syncDir(filepath.Dir(r.dir))
}

// Remove removes the repository, what a crash has left of its making, and what an earlier Remove has left. It does
// nothing if none of it is there. It waits for the writes that run, as CloseSoon does, and refuses those that begin later.
func (r *Repository) Remove(ctx context.Context) error {
	if isDir, err := directory(r.storage); err != nil {
		return fmt.Errorf("repository %s: %w", r.dir, err)
	} else if !isDir {
		return fmt.Errorf("repository %s: %w", r.dir, ErrStorageMissing)
	}
	if err := r.discard(r.dir + ".new"); err != nil {
		return err
	}
	switch err := r.check(); {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrNotRepository):
		return r.remove() // Git writes to nothing else than a repository
	case err != nil:
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return err
	}
	err = r.setAside(r.dir)
	open()
	return errors.Join(err, r.remove())
}

// remove is Remove for a repository that nothing can write to.
func (r *Repository) remove() error {
	defer r.engine.forget(r.dir)
	defer r.Evict()
	return r.discard(r.dir)
}

// Move makes the repository that of to, on the same storage, where nothing must be. It does nothing if it was moved already. The
// repository is at the one place or at the other, and nowhere else. It waits for the writes that run, as CloseSoon does; those that begin
// meanwhile are refused, and so are those that were prepared at the former place.
func (r *Repository) Move(ctx context.Context, to *Repository) error {
	if r.dir == to.dir {
		return r.Check()
	}
	switch err := r.check(); {
	case errors.Is(err, ErrNotFound):
		return to.Check()
	case err != nil:
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	if err := to.check(); !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("moving %s: something is at %s", r.dir, to.dir)
	}
	if err := os.MkdirAll(filepath.Dir(to.dir), 0o755); err != nil {
		return fmt.Errorf("making the parent of %s: %w", to.dir, err)
	}
	// The lock goes along with the files.
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return err
	}
	defer open()
	defer r.engine.forget(r.dir)
	defer r.Evict()
	if err := os.Rename(r.dir, to.dir); err != nil {
		return fmt.Errorf("moving %s: %w", r.dir, err)
	}
	return errors.Join(syncDir(filepath.Dir(r.dir)), syncDir(filepath.Dir(to.dir)))
}

// Evict ends the processes that have the repository open. It is for whoever moves or repacks it; Remove does it by itself.
func (r *Repository) Evict() { r.engine.readers.evict(r.dir) }

// discard removes a directory by way of the trash, which it empties. The move makes it disappear as a whole.
func (r *Repository) discard(dir string) error {
	if err := r.setAside(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(r.trash()); err != nil {
		return fmt.Errorf("emptying %s: %w", r.trash(), err)
	}
	return nil
}

// setAside moves a directory to the trash. It does nothing where there is none.
func (r *Repository) setAside(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	} else if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := os.MkdirAll(r.trash(), 0o700); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	into, err := os.MkdirTemp(r.trash(), "*")
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := os.Rename(dir, filepath.Join(into, "git")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}

func (r *Repository) trash() string { return r.dir + ".trash" }

// syncTree makes the names of all files below dir durable, and what git itself does not sync: everything but objects.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && (!entry.Type().IsRegular() || filepath.Base(filepath.Dir(path)) == "pack") {
			return nil
		}
		return syncDir(path)
	})
}

// syncDir syncs a file or directory.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}
