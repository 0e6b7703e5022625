package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// lateTimeout limits the removal of objects that were created while their group was being removed.
const lateTimeout = time.Minute

// Remover removes groups with everything below them.
type Remover struct {
	writer *declare.Writer
	policy policy
}

// NewRemover returns a Remover.
func NewRemover(b Backend) *Remover { return &Remover{b.declare, b.policy} }

// Remove removes projects, and then groups in the given order, including objects that are created below the groups meanwhile. It removes
// nothing if REST callers must not remove one of them; the error names it.
func (r *Remover) Remove(ctx context.Context, projects, groups []catalog.Seen) error {
	if err := r.allow(ctx, slices.Concat(projects, groups)); err != nil {
		return err
	}
	for _, s := range projects {
		if err := r.delete(ctx, s.Project.DeepCopy()); err != nil {
			return err
		}
	}
	var gone []catalog.Scope
	for _, s := range groups {
		if err := r.delete(ctx, s.Groups[0].DeepCopy()); err != nil {
			return errors.Join(err, r.removeLate(ctx, gone))
		}
		gone = append(gone, s.Scope)
	}
	return r.removeLate(ctx, gone)
}

// allow returns an error if REST callers must not remove one of the projects and groups.
func (r *Remover) allow(ctx context.Context, all []catalog.Seen) error {
	for _, s := range all {
		err := r.policy.allowIn(ctx, s.Target(), s.Scope)
		var refused *refusedError
		if errors.As(err, &refused) {
			return endpoint.Forbidden(s.Path() + ": " + refused.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Remover) delete(ctx context.Context, obj client.Object) error {
	if err := r.writer.Delete(ctx, obj); !errors.Is(err, declare.ErrGone) {
		return answer(err, "")
	}
	return nil
}

// removeLate removes objects that were created below groups while these were being removed. It continues after the client disconnects,
// because no client can reach such objects later. The creators of further objects take them back.
func (r *Remover) removeLate(ctx context.Context, gone []catalog.Scope) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
	defer cancel()
	var failed error
	for ; len(gone) > 0; gone = gone[1:] {
		above := gone[0].Groups
		projects, groups, err := r.writer.Below(ctx, above[0])
		failed = errors.Join(failed, err)
		for _, p := range projects {
			_, err := r.discard(ctx, catalog.Scope{Project: p, Groups: above})
			failed = errors.Join(failed, err)
		}
		for _, g := range groups {
			late := catalog.Scope{Groups: append([]*v1alpha1.Group{g}, above...)}
			discarded, err := r.discard(ctx, late)
			failed = errors.Join(failed, err)
			if discarded {
				gone = append(gone, late)
			}
		}
	}
	return failed
}

// discard removes a late project or group, and reports whether it is gone or going. If it is declared elsewhere, it stays, and waits for
// another group. If it was moved elsewhere, it stays as well: a request that moves something into a group that is gone takes the move back.
func (r *Remover) discard(ctx context.Context, late catalog.Scope) (gone bool, err error) {
	if !late.Target().GetDeletionTimestamp().IsZero() {
		return true, nil
	}
	err = r.policy.allowIn(ctx, late.Target(), late)
	if errors.As(err, new(*refusedError)) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return r.writer.DiscardBelow(ctx, late.Target(), late.Parent())
}
