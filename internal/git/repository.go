package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Errors about a repository as a whole.
var (
	// ErrStorageMissing: the storage directory does not exist, so the state of the repository is not known.
	ErrStorageMissing = errors.New("the repository storage is not available")
	// ErrNotFound: the storage exists, but has no repository at the path.
	ErrNotFound = errors.New("the repository does not exist")
	// ErrNotRepository: the path has something else, or a damaged repository.
	ErrNotRepository = errors.New("this is not a Git repository")
)

// Unavailable is the message about a repository that exists and cannot be reached.
const Unavailable = "The repository is not available. Please try again later, and tell an administrator if the problem persists."

// OutOfReach reports whether an error says that a repository does not exist, is damaged, or is on a storage that is not available.
func OutOfReach(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotRepository) || errors.Is(err, ErrStorageMissing)
}

// Full is the message for writes to a repository whose storage has no space left.
const Full = "The storage of the repository has no space left. Please tell an administrator."

// Repository is a bare repository in a storage directory. It also uses the paths that end in ".new" and ".trash" instead of its own suffix:
// it is created in the former and removed through the latter, so that it always exists completely or not at all.
type Repository struct {
	engine  *Engine
	storage string
	dir     string
	// joined are the repositories whose objects it also has.
	joined []*Repository
	// mounted may be nil; see Guard.
	mounted func() error
	// known is what Empty last found, or nil.
	known atomic.Pointer[emptiness]
}

// Repository returns a handle on the repository at path, a relative path without "..", in the absolute directory storage. The repository
// need not exist.
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

// Engine returns the engine of the repository.
func (r *Repository) Engine() *Engine { return r.engine }

// Guard makes the storage count as missing while nothing is at the place of the repository and mounted returns an error, which must be an
// ErrStorageMissing. Otherwise the empty directory at which a volume is not mounted would be taken for the storage.
func (r *Repository) Guard(mounted func() error) { r.mounted = mounted }

// Dir returns the absolute path of the directory.
func (r *Repository) Dir() string { return r.dir }

// Check returns nil if the repository exists, and otherwise ErrStorageMissing, ErrNotFound, ErrNotRepository or the error of reading the
// file system. It starts no process and does not look for damage; see Fsck.
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
		return r.absent()
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

// absent returns the error for a repository that does not exist.
func (r *Repository) absent() error {
	if r.mounted != nil {
		if err := r.mounted(); err != nil {
			return err
		}
	}
	return ErrNotFound
}

func directory(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// Results returns the remembered results about the repository.
func (r *Repository) Results() recall.Results { return r.engine.answers.About(r.dir) }

// Recall returns a value that Remember has stored about a repository under the same key.
func Recall[T any](r *Repository, what, key string) (T, bool) {
	return recall.Known[T](r.Results(), what, key)
}

// Remember stores a value of the given size in bytes, which must not be changed afterwards, unless it is too large. The value must depend only on
// the key, which has the ids of all objects that were read.
func Remember[T any](r *Repository, what, key string, value T, bytes int64) {
	recall.Keep(r.Results(), what, key, value, int(bytes))
}

// Run runs a command on the repository, which must exist. It adds a timeout if ctx has no deadline.
func (r *Repository) Run(ctx context.Context, c process.Command) error {
	ctx, cancel := r.engine.processes.Limited(ctx)
	defer cancel()
	held, err := r.pin(ctx)
	if err != nil {
		return err
	}
	defer held.release()
	c.Held = slices.Concat(c.Held, held)
	return r.engine.processes.Run(ctx, c)
}

// Output is Run for a command of which it returns the output, at most limit bytes.
func (r *Repository) Output(ctx context.Context, limit int, c process.Command) ([]byte, error) {
	ctx, cancel := r.engine.processes.Limited(ctx)
	defer cancel()
	held, err := r.pin(ctx)
	if err != nil {
		return nil, err
	}
	defer held.release()
	c.Held = slices.Concat(c.Held, held)
	return r.engine.processes.Output(ctx, limit, c)
}

// InitOptions configure Init.
type InitOptions struct {
	// DefaultBranch is the branch that HEAD names. The default is "main".
	DefaultBranch string
	// ObjectFormat is "sha1" or "sha256". The default is "sha1".
	ObjectFormat string
}

// Init creates an empty repository. If the repository exists already, it does nothing, even if the options differ.
func (r *Repository) Init(ctx context.Context, o InitOptions) error {
	return r.Create(func(staged *Repository) error { return staged.Format(ctx, o) })
}

// Format makes a repository that Create stages an empty one.
func (r *Repository) Format(ctx context.Context, o InitOptions) error {
	if o.DefaultBranch == "" {
		o.DefaultBranch = "main"
	}
	if o.ObjectFormat == "" {
		o.ObjectFormat = "sha1"
	}
	if err := object.CheckRefName("refs/heads/" + o.DefaultBranch); err != nil {
		return err
	}
	kind := layoutKind{r.storage, o.ObjectFormat}
	if known, ok := r.engine.layouts.Load(kind); ok {
		return known.(layout).write(r.dir, o.DefaultBranch)
	}
	err := r.engine.processes.Run(ctx, process.Command{Args: []string{
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

// Create calls fill to create the repository in a staging directory, and then moves it into place. If anything fails, the place stays
// empty. The next attempt removes what a crash leaves in the staging directory.
func (r *Repository) Create(fill func(staged *Repository) error) error {
	switch err := r.check(); {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound):
	case errors.Is(err, ErrNotRepository) && os.Remove(r.dir) == nil: // it was an empty directory
	default:
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o755); err != nil {
		return fmt.Errorf("creating the parent of %s: %w", r.dir, err)
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

// stage works in a directory with a unique name. A concurrent process, such as a leader that has just been superseded, can remove that
// directory, but the worst effect is an error.
func (r *Repository) stage(staging string, fill func(staged *Repository) error) error {
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return fmt.Errorf("staging %s: %w", r.dir, err)
	}
	own, err := os.MkdirTemp(staging, ".new-*")
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
	if err := disk.SyncTree(staged.dir); err != nil {
		return err
	}
	if err := os.Rename(staged.dir, r.dir); err != nil {
		return fmt.Errorf("putting %s into place: %w", r.dir, err)
	}
	_ = os.Remove(own)
	return disk.SyncDir(filepath.Dir(r.dir))
}

// Remove removes the repository, and what crashes during its creation or an earlier Remove have left. It does nothing if nothing exists. It
// waits for running writes like CloseSoon, and later writes are refused.
func (r *Repository) Remove(ctx context.Context) error {
	there := r.check()
	gone := errors.Is(there, ErrNotFound) || errors.Is(there, ErrNotRepository)
	if there != nil && !gone {
		return fmt.Errorf("repository %s: %w", r.dir, there)
	}
	if err := r.discard(r.dir + ".new"); err != nil {
		return err
	}
	if gone {
		return r.remove() // Git only writes to a repository
	}
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return err
	}
	err = r.setAside(r.dir)
	open()
	return errors.Join(err, r.remove())
}

// remove is Remove for a repository to which nothing can write.
func (r *Repository) remove() error {
	defer r.engine.answers.Forget(r.dir)
	defer r.Evict()
	return r.discard(r.dir)
}

// Move moves the repository to the path of to, on the same storage, where nothing may exist. It does nothing if the repository was moved
// already. The repository is always at exactly one of the two paths. Move waits for running writes like CloseSoon. Writes that begin
// meanwhile are refused, and so are writes that were prepared at the former path.
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
	switch err := to.check(); {
	case errors.Is(err, ErrStorageMissing):
		return fmt.Errorf("moving %s: %w", r.dir, err)
	case !errors.Is(err, ErrNotFound):
		return fmt.Errorf("moving %s: %s already exists", r.dir, to.dir)
	}
	if err := os.MkdirAll(filepath.Dir(to.dir), 0o755); err != nil {
		return fmt.Errorf("creating the parent of %s: %w", to.dir, err)
	}
	// The locked files move too.
	open, err := r.CloseSoon(ctx)
	if err != nil {
		return err
	}
	defer open()
	defer r.engine.answers.Forget(r.dir)
	defer r.Evict()
	if err := os.Rename(r.dir, to.dir); err != nil {
		return fmt.Errorf("moving %s: %w", r.dir, err)
	}
	return errors.Join(disk.SyncDir(filepath.Dir(r.dir)), disk.SyncDir(filepath.Dir(to.dir)))
}

// Evict ends the processes that have the repository open. Call it when moving or repacking the repository; Remove calls it itself.
func (r *Repository) Evict() { r.engine.readers.evict(r.dir) }

// discard removes a directory by moving it to the trash, so that it disappears atomically, and then empties the trash.
func (r *Repository) discard(dir string) error {
	if err := r.setAside(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(r.trash()); err != nil {
		return fmt.Errorf("emptying %s: %w", r.trash(), err)
	}
	return nil
}

// setAside moves a directory to the trash, if it exists.
func (r *Repository) setAside(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	} else if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := os.MkdirAll(r.trash(), 0o700); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	into, err := os.MkdirTemp(r.trash(), ".new-*")
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := os.Rename(dir, filepath.Join(into, "git")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}

func (r *Repository) trash() string { return r.dir + ".trash" }
