package repository

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/git"
)

// The audit verbs for changes of repositories by controllers.
const (
	actionInit    = "init"
	actionImport  = "import"
	actionMirror  = "mirror"
	actionSetHead = "set-head"
	actionMove    = "move"
	actionDestroy = "destroy"
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
	repo, err := a.Repositories.Of(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Handle{repo, a.told, audit.ObjectOf(p, p.Status.FullPath)}, nil
}

// OfRetained is Repositories.OfRetained, but returns a handle. Its events name the project that left the repository.
func (a *Audited) OfRetained(ctx context.Context, r *v1alpha1.RetainedRepository) (*Handle, error) {
	repo, err := a.Repositories.OfRetained(ctx, r)
	if err != nil {
		return nil, err
	}
	was := r.Spec.Project
	return &Handle{repo, a.told, audit.Object{
		Kind: "Project", Namespace: was.Namespace, Name: was.Name, ID: was.ID, UID: was.UID, Path: was.FullPath,
	}}, nil
}

// Handle is a repository for a controller. Each of its writes appears in the audit log, unless it changed nothing.
type Handle struct {
	repo  *git.Repository
	told  *audit.Log
	about audit.Object
}

// Check calls git.Repository.Check.
func (h *Handle) Check() error { return h.repo.Check() }

// Size calls git.Repository.Size.
func (h *Handle) Size(ctx context.Context) (int64, error) { return h.repo.Size(ctx) }

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

// Tidy removes invisible leftovers of crashes. See git.Repository.CleanStale.
func (h *Handle) Tidy(ctx context.Context) error {
	_, err := h.repo.CleanStale(ctx, git.StaleAge)
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

// Import makes the repository a copy of another one. See git.Repository.Import.
func (h *Handle) Import(ctx context.Context, o git.ImportOptions) error {
	if h.repo.Check() == nil {
		return nil
	}
	err := h.repo.Import(ctx, o)
	e := audit.Event{Action: actionImport, Target: audit.Address(o.URL)}
	if err == nil {
		h.imported(ctx, &e)
	}
	h.tell(ctx, err, e)
	return err
}

// imported adds to an event what an import has written.
func (h *Handle) imported(ctx context.Context, e *audit.Event) {
	for ref, err := range h.repo.Refs(ctx, "refs/heads/", "refs/tags/") {
		if err != nil {
			e.Refs, e.Rest, e.Reason = nil, nil, "the refs that were written could not be determined"
			return
		}
		e.Add(audit.Ref{Name: ref.Name, New: ref.Object, Result: audit.Done})
	}
}

// Push pushes to another repository. Its own refs do not change. See git.Repository.Push.
func (h *Handle) Push(ctx context.Context, o git.PushOptions) (git.PushResult, error) {
	e := audit.Event{Action: actionMirror, Target: audit.Address(o.URL)}
	o.Tell = func(p git.PushedRef) {
		ref := audit.Ref{Name: p.Name, Old: p.Old, New: p.New, Result: audit.Done}
		if p.Refused != "" {
			ref.Result, ref.Reason = audit.Refused, p.Refused
		}
		e.Add(ref)
	}
	result, err := h.repo.Push(ctx, o)
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

// SetHead changes the default branch. See git.Repository.SetHead.
func (h *Handle) SetHead(ctx context.Context, branch string) error {
	ctx, end, err := h.repo.BeginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = h.repo.SetHead(ctx, branch)
	ref := audit.Ref{Name: "HEAD", New: "refs/heads/" + branch, Result: audit.Done}
	if err != nil {
		ref.Result = audit.Failed
	}
	h.tell(ctx, err, audit.Event{Action: actionSetHead, Refs: []audit.Ref{ref}})
	return err
}

// Move moves the repository to the path of to. See git.Repository.Move.
func (h *Handle) Move(ctx context.Context, to *Handle) error {
	still := h.repo.Dir() == to.repo.Dir() || errors.Is(h.repo.Check(), git.ErrNotFound)
	err := h.repo.Move(ctx, to.repo)
	if !still {
		to.tell(ctx, err, audit.Event{Action: actionMove})
	}
	return err
}

// Remove removes the repository. The leftovers of a crash during its creation are removed without an audit event. See
// git.Repository.Remove.
func (h *Handle) Remove(ctx context.Context) error {
	there := h.repo.Check()
	err := h.repo.Remove(ctx)
	if !errors.Is(there, git.ErrNotFound) && !errors.Is(there, git.ErrStorageMissing) {
		h.tell(ctx, err, audit.Event{Action: actionDestroy})
	}
	return err
}

// RemoveUnused removes the repository if nothing was ever written to it. See git.Repository.RemoveUnused.
func (h *Handle) RemoveUnused(ctx context.Context) (gone bool, err error) {
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
