package store

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// lateTimeout limits the removal of objects that were created while their group was being removed.
const lateTimeout = time.Minute

// Tree removes groups with everything below them.
type Tree struct{ writer *declare.Writer }

// NewTree returns a Tree.
func NewTree(w Writer) *Tree { return &Tree{w.declare} }

// Remove removes projects, and then groups in the given order, including objects that are created below the groups meanwhile. It removes
// nothing if REST callers must not remove one of the projects; the error names that project.
func (t *Tree) Remove(ctx context.Context, projects, groups []catalog.Seen) error {
	if err := t.allow(ctx, projects); err != nil {
		return err
	}
	for _, s := range projects {
		if err := t.delete(ctx, s.Project.DeepCopy()); err != nil {
			return err
		}
	}
	var gone []*v1alpha1.Group
	for _, s := range groups {
		g := s.Groups[0].DeepCopy()
		if err := t.delete(ctx, g); err != nil {
			return errors.Join(err, t.removeLate(ctx, gone))
		}
		gone = append(gone, g)
	}
	return t.removeLate(ctx, gone)
}

// allow returns an error if REST callers must not remove one of the projects.
func (t *Tree) allow(ctx context.Context, projects []catalog.Seen) error {
	for _, s := range projects {
		err := t.writer.Allow(ctx, s.Project, s.Project)
		var refused *declare.RefusedError
		if errors.As(err, &refused) {
			return endpoint.Forbidden(s.Path() + ": " + refused.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) delete(ctx context.Context, obj client.Object) error {
	if err := t.writer.Delete(ctx, obj); !errors.Is(err, declare.ErrGone) {
		return answer(err, "")
	}
	return nil
}

// removeLate removes objects that were created below groups while these were being removed. It continues after the client disconnects,
// because nobody can reach such objects later. The creators of further objects take them back.
func (t *Tree) removeLate(ctx context.Context, gone []*v1alpha1.Group) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
	defer cancel()
	var failed error
	for ; len(gone) > 0; gone = gone[1:] {
		projects, groups, err := t.writer.Below(ctx, gone[0])
		failed = errors.Join(failed, err)
		for _, p := range projects {
			if !p.DeletionTimestamp.IsZero() {
				continue
			}
			err := t.writer.Allow(ctx, p, p)
			if errors.As(err, new(*declare.RefusedError)) {
				continue // declared elsewhere; it waits for another group
			}
			if err == nil {
				err = t.writer.Discard(ctx, p)
			}
			failed = errors.Join(failed, err)
		}
		for _, g := range groups {
			if !g.DeletionTimestamp.IsZero() {
				continue
			}
			failed = errors.Join(failed, t.writer.Discard(ctx, g))
		}
		gone = append(gone, groups...)
	}
	return failed
}
