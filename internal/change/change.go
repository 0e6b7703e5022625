// Package change changes the refs of projects for pushes, REST requests and jobs: it decides on the updates, applies them, records them in
// the audit log, and publishes them. It reads from the repository the facts on which a decision of package protection depends.
package change

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// Write is a write of refs in the repository of a project: a push, a request of the REST API, or a job such as a merge.
type Write struct {
	Project    types.NamespacedName
	Repository *git.Repository
	Via        protection.Via
	// Authorize returns the writer as an actor, and the protections of some branches, as they are declared at the time of the call. Its
	// error ends the write: the writer no longer has the permission, or the project is read-only.
	Authorize func(ctx context.Context, branches []string) (protection.Actor, []protection.Rule, error)
	// OwnerApprovals counts the users who have approved the write and are among these owners of a CODEOWNERS file. It is nil if the write
	// cannot be approved.
	OwnerApprovals func(ctx context.Context, owners []string) (int, error)
	// Written is called after the refs were written.
	Written func(Event)
	// By is the writer in the Event; empty if it is not a user.
	By database.User
}

// Event reports a write of refs. Events are lost if the process is killed or a follower is too slow, so followers must also be able to derive their
// work from the repository.
type Event struct {
	Project types.NamespacedName
	// Updates are the updates of the write. git may have failed to apply some updates of a push. Without updates, only HEAD has changed.
	Updates []update.Ref
	// By is the user who made the write. It is empty if the writer is not a user.
	By database.User
}

// RefusedError has the refused updates of a write. A refused write applies none of its updates.
type RefusedError struct {
	// Refusals are in the order of the updates. There is at least one.
	Refusals []Refusal
}

// Refusal is the reason why an update is refused.
type Refusal struct {
	// Ref is the full name of the ref, and Reason is for the person who requested the update.
	Ref, Reason string
}

func (e *RefusedError) Error() string { return e.Refusals[0].Reason }

// Reasons returns the reasons by ref.
func (e *RefusedError) Reasons() map[string]string {
	reasons := make(map[string]string, len(e.Refusals))
	for _, r := range e.Refusals {
		reasons[r.Ref] = r.Reason
	}
	return reasons
}

// DecisionError wraps an error of Decide that Apply returns. Apply has written no ref then.
type DecisionError struct{ Err error }

func (e *DecisionError) Error() string { return e.Err.Error() }

// Unwrap returns the error of Decide.
func (e *DecisionError) Unwrap() error { return e.Err }

// ErrDefaultBranch is returned for a deletion of the default branch.
var ErrDefaultBranch = errors.New("the default branch of a project cannot be deleted")

// timeout limits a write that has begun. It continues if its client disconnects.
const timeout = time.Minute

// Apply applies all updates that prepare returns, or none. prepare can write the objects that the updates need.
//
// Apply authorizes the writer before it calls prepare, so that prepare never runs for unauthorized writers, and decides on the updates
// afterwards. The error is git.ErrClosed if the repository is closed, one of Authorize, prepare or refs.Apply, or a *DecisionError with one of
// Decide. A branch that has changed since prepare read it is not updated. The error is refs.ErrMoved then.
func (w *Write) Apply(ctx context.Context, prepare func(ctx context.Context) ([]update.Ref, error)) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	// From here on, closing the repository waits for this write, or this write finds it closed.
	ctx, end, err := w.Repository.BeginWrite(ctx)
	if err != nil {
		return err
	}
	defer end()
	if _, _, err := w.Authorize(ctx, nil); err != nil {
		return err
	}
	updates, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { note(ctx, updates, err) }()
	if err := w.Decide(ctx, nil, updates...); err != nil {
		return &DecisionError{err}
	}
	if err := refs.Apply(ctx, w.Repository, updates...); err != nil {
		return err
	}
	w.Publish(updates)
	return nil
}

// Publish reports the updates of a write to its followers. Call it after Decide once git has applied them; Apply does so itself.
func (w *Write) Publish(updates []update.Ref) { w.Written(Event{w.Project, updates, w.By}) }

// note adds the updates of a write to the audit event of the request.
func note(ctx context.Context, updates []update.Ref, err error) {
	result, reasons := audit.Done, map[string]string(nil)
	switch refused := (*RefusedError)(nil); {
	case errors.As(err, &refused):
		result, reasons = audit.Refused, refused.Reasons()
	case errors.Is(err, ErrDefaultBranch):
		result = audit.Refused
	case err != nil:
		result = audit.Failed
	}
	audit.From(ctx).Updates(updates, result, reasons)
}

// Decide returns an error if the updates are refused: one of Authorize, a *RefusedError or ErrDefaultBranch. Any other error means that
// there is no decision. q has the objects of a push. It is nil if all objects are in the repository.
//
// Reading the repository can take long, and tokens, roles and rules can change meanwhile. So if a rule depended on the repository, Decide
// decides again with the same facts. Like a decision that does not depend on the repository, the second decision takes no time, and the
// caller applies the updates at once.
func (w *Write) Decide(ctx context.Context, q *git.Quarantine, updates ...update.Ref) error {
	requests, branches := make([]*request, len(updates)), []string(nil)
	for i, u := range updates {
		requests[i] = &request{Ref: u, via: w.Via, repository: w.Repository, quarantine: q, approvals: w.OwnerApprovals}
		if name, ok := protection.Branch(u.Name); ok {
			branches = append(branches, name)
		}
	}
	err := w.decide(ctx, requests, branches)
	if err == nil && slices.ContainsFunc(requests, (*request).hasRead) {
		err = w.decide(ctx, requests, branches)
	}
	return err
}

func (w *Write) decide(ctx context.Context, requests []*request, branches []string) error {
	actor, rules, err := w.Authorize(ctx, branches)
	if err != nil {
		return err
	}
	var head refs.Head
	if w.Via != protection.Push { // Git itself protects the default branch from pushes
		if head, err = refs.ReadHead(ctx, w.Repository); err != nil {
			return err
		}
	}
	var refused RefusedError
	for _, r := range requests {
		if r.Deletes() && head.Branch != "" && r.Name == "refs/heads/"+head.Branch {
			return ErrDefaultBranch
		}
		reason, err := r.refused(ctx, rules, actor)
		if err != nil {
			return err
		}
		if reason != "" {
			refused.Refusals = append(refused.Refusals, Refusal{r.Name, reason})
		}
	}
	if len(refused.Refusals) > 0 {
		return &refused
	}
	return context.Cause(ctx)
}
