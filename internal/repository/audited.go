package repository

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/relocate"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// The audit verbs for changes of repositories by controllers.
const (
	actionInit     = "init"
	actionImport   = "import"
	actionFork     = "fork"
	actionMirror   = "mirror"
	actionSetHead  = "set-head"
	actionMove     = "move"
	actionRelocate = "relocate"
	actionDestroy  = "destroy"
)

// Audited finds repositories for controllers, as handles that write each change to the audit log.
type Audited struct {
	*Repositories
	told *audit.Log
}

// Audited returns the repositories for controllers, whose writes are recorded in told. A nil log records nothing.
func (r *Repositories) Audited(told *audit.Log) *Audited { return &Audited{r, told} }

// Of is Repositories.Of, but returns a handle.
func (a *Audited) Of(ctx context.Context, p *v1alpha1.Project) (*Handle, error) {
	all, err := a.All(ctx, p)
	if err != nil {
		return nil, err
	}
	return a.handle(p, all), nil
}

// At returns a handle on the repositories of a project on a shard, whether or not they exist there. The error is catalog.ErrNotFound if the
// shard is not declared, and ErrNoStorage if the project has no id yet.
func (a *Audited) At(ctx context.Context, p *v1alpha1.Project, storage string) (*Handle, error) {
	if p.RESTID() == 0 {
		return nil, ErrNoStorage
	}
	all, err := a.on(ctx, storage, Paths(p))
	if err != nil {
		return nil, err
	}
	return a.handle(p, all), nil
}

// handle returns a handle on all repositories of a project.
func (a *Audited) handle(p *v1alpha1.Project, all []*git.Repository) *Handle {
	return &Handle{all[0], all[1:], a.told, audit.ObjectOf(p, p.Status.FullPath)}
}

// OfRetained is Repositories.OfRetained, but returns a handle. Its events name the project that left the repository.
func (a *Audited) OfRetained(ctx context.Context, r *v1alpha1.RetainedRepository) (*Handle, error) {
	all, err := a.on(ctx, r.Spec.Storage, beside(PathOfRetained(r)))
	if err != nil {
		return nil, err
	}
	was := r.Spec.Project
	return &Handle{all[0], all[1:], a.told, audit.Object{
		Kind: "Project", Namespace: was.Namespace, Name: was.Name, ID: was.ID, UID: was.UID, Path: was.FullPath,
	}}, nil
}

// Handle is the repository of a project for a controller. Each of its writes appears in the audit log, unless it changed nothing.
type Handle struct {
	repo *git.Repository
	// beside are the wiki and the designs, which are moved and removed together with the code.
	beside []*git.Repository
	told   *audit.Log
	about  audit.Object
}

// Check calls git.Repository.Check.
func (h *Handle) Check() error { return h.repo.Check() }

// Size calls upkeep.Size.
func (h *Handle) Size(ctx context.Context) (int64, error) { return upkeep.Size(ctx, h.repo) }

// Evict calls git.Repository.Evict.
func (h *Handle) Evict() { h.repo.Evict() }

// AwaitWrites waits until all current writes have ended, in any process. See git.Repository.CloseSoon.
func (h *Handle) AwaitWrites(ctx context.Context) error {
	open, err := h.repo.CloseSoon(ctx)
	if err != nil {
		return err
	}
	open()
	return nil
}

// Tidy removes invisible leftovers of crashes. See upkeep.CleanStale.
func (h *Handle) Tidy(ctx context.Context) error {
	_, err := upkeep.CleanStale(ctx, h.repo, upkeep.StaleAge)
	return err
}

// Init creates the repository. See git.Repository.Init.
func (h *Handle) Init(ctx context.Context, o git.InitOptions) error {
	if h.repo.Check() == nil {
		return nil
	}
	err := h.repo.Init(ctx, o)
	h.tell(ctx, err, audit.Event{Action: actionInit})
	return err
}

// Import makes the repository a copy of another one. See transfer.Import.
func (h *Handle) Import(ctx context.Context, o transfer.ImportOptions) error {
	if h.repo.Check() == nil {
		return nil
	}
	err := transfer.Import(ctx, h.repo, o)
	e := audit.Event{Action: actionImport, Target: audit.Address(o.URL)}
	if err == nil {
		h.imported(ctx, &e)
	}
	h.tell(ctx, err, e)
	return err
}

// Fork makes the repository a copy of the one of another project. See transfer.Fork.
func (h *Handle) Fork(ctx context.Context, of *Handle, o transfer.ForkOptions) error {
	if h.repo.Check() == nil {
		return nil
	}
	err := transfer.Fork(ctx, h.repo, of.repo, o)
	e := audit.Event{Action: actionFork, Target: of.about.Path}
	if err == nil {
		h.imported(ctx, &e)
	}
	h.tell(ctx, err, e)
	return err
}

// imported adds to an event what an import or a fork has written.
func (h *Handle) imported(ctx context.Context, e *audit.Event) {
	for ref, err := range refs.List(ctx, h.repo, "refs/heads/", "refs/tags/") {
		if err != nil {
			e.Refs, e.Rest, e.Reason = nil, nil, "the refs that were written could not be determined"
			return
		}
		e.Add(audit.Ref{Ref: update.Ref{Name: ref.Name, New: ref.Object}, Result: audit.Done})
	}
}

// Push pushes to another repository. Its own refs do not change. See transfer.Push.
func (h *Handle) Push(ctx context.Context, o transfer.PushOptions) (transfer.PushResult, error) {
	e := audit.Event{Action: actionMirror, Target: audit.Address(o.URL)}
	o.Tell = func(u update.Ref, refused string) {
		ref := audit.Ref{Ref: u, Result: audit.Done}
		if refused != "" {
			ref.Result, ref.Reason = audit.Refused, refused
		}
		e.Add(ref)
	}
	result, err := transfer.Push(ctx, h.repo, o)
	switch {
	case err != nil:
	case result.Updated == 0 && len(result.Refused) == 0:
		return result, nil
	case result.Updated == 0:
		e.Result = audit.Refused
	case len(result.Refused) > 0:
		e.Result = audit.Failed
	}
	h.tell(ctx, err, e)
	return result, err
}

// SetHead changes the default branch. See refs.SetHead.
func (h *Handle) SetHead(ctx context.Context, branch string) error {
	ctx, end, err := h.repo.BeginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = refs.SetHead(ctx, h.repo, branch)
	ref := audit.Ref{Ref: update.Ref{Name: "HEAD", New: "refs/heads/" + branch}, Result: audit.Done}
	if err != nil {
		ref.Result = audit.Failed
	}
	h.tell(ctx, err, audit.Event{Action: actionSetHead, Refs: []audit.Ref{ref}})
	return err
}

// Move moves the repository, with its wiki and designs, to the path of to. See git.Repository.Move.
func (h *Handle) Move(ctx context.Context, to *Handle) error {
	still := h.repo.Dir() == to.repo.Dir() || errors.Is(h.repo.Check(), git.ErrNotFound)
	err := h.repo.Move(ctx, to.repo)
	for i, other := range h.beside {
		if err == nil && !errors.Is(other.Check(), git.ErrNotFound) {
			err = other.Move(ctx, to.beside[i])
		}
	}
	if !still {
		to.tell(ctx, err, audit.Event{Action: actionMove})
	}
	return err
}

// Relocate moves the repository, with its wiki and designs, to the shard of to. See relocate.Move.
func (h *Handle) Relocate(ctx context.Context, to *Handle, o relocate.Options) error {
	err := relocate.Move(ctx, h.pairs(to), o)
	h.tell(ctx, err, audit.Event{Action: actionRelocate})
	return err
}

// Undo removes what dead attempts to relocate the repositories have left at to, unless to is nil, and makes these live again. See
// relocate.Undo.
func (h *Handle) Undo(ctx context.Context, to *Handle, confirm func(context.Context) error) error {
	return relocate.Undo(ctx, h.pairs(to), confirm)
}

// all returns the repository, the wiki and the designs, whether or not they exist.
func (h *Handle) all() []*git.Repository { return append([]*git.Repository{h.repo}, h.beside...) }

// pairs pairs the repositories with their places on another shard, if to is not nil.
func (h *Handle) pairs(to *Handle) []relocate.Pair {
	from := h.all()
	pairs := make([]relocate.Pair, len(from))
	for i := range from {
		pairs[i].From = from[i]
		if to != nil {
			pairs[i].To = to.all()[i]
		}
	}
	return pairs
}

// RemoveRetired removes the repository, with its wiki and designs, after Relocate. See git.Repository.RemoveRetired.
func (h *Handle) RemoveRetired(ctx context.Context, by string) error {
	removed := false
	remove := func(r *git.Repository) error {
		there := r.Check() == nil
		err := r.RemoveRetired(ctx, by)
		removed = removed || there && err == nil
		return err
	}
	var err error
	for _, other := range h.beside {
		err = errors.Join(err, remove(other))
	}
	if err == nil {
		err = remove(h.repo)
	}
	if removed {
		h.tell(ctx, err, audit.Event{Action: actionDestroy, Reason: "another copy of it is live"})
	}
	return err
}

// Remove removes the repository, with its wiki and designs. The leftovers of a crash during its creation are removed without an audit event. See
// git.Repository.Remove.
func (h *Handle) Remove(ctx context.Context) error {
	there := h.repo.Check()
	var err error
	for _, other := range h.beside {
		err = errors.Join(err, other.Remove(ctx))
	}
	if err == nil {
		err = h.repo.Remove(ctx)
	}
	if !errors.Is(there, git.ErrNotFound) && !errors.Is(there, git.ErrStorageMissing) {
		h.tell(ctx, err, audit.Event{Action: actionDestroy})
	}
	return err
}

// RemoveUnused removes the repository if nothing was ever written to it, and there is neither a wiki nor a design. See
// git.Repository.RemoveUnused.
func (h *Handle) RemoveUnused(ctx context.Context) (gone bool, err error) {
	for _, other := range h.beside {
		if !errors.Is(other.Check(), git.ErrNotFound) {
			return false, nil
		}
	}
	gone, err = h.repo.RemoveUnused(ctx)
	if gone || err != nil {
		h.tell(ctx, err, audit.Event{Action: actionDestroy, Reason: "there is neither a ref nor an object in it"})
	}
	return gone, err
}

func (h *Handle) tell(ctx context.Context, err error, e audit.Event) {
	if err != nil {
		e.Result = audit.Failed
	}
	about := h.about
	e.About = &about
	h.told.Tell(ctx, e)
}
