package declare

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// aboveTimeout limits the check whether the parent group still exists.
const aboveTimeout = 10 * time.Second

// Below returns the projects and groups in a group's namespace that name the group by name and UID, as objects created over REST do. It
// reads past the cache. Once the group is gone, the result is complete, except for objects that Create discards.
func (w *Writer) Below(ctx context.Context, g *v1alpha1.Group) ([]*v1alpha1.Project, []*v1alpha1.Group, error) {
	var projects v1alpha1.ProjectList
	var groups v1alpha1.GroupList
	err := errors.Join(
		w.live.List(ctx, &projects, client.InNamespace(g.Namespace), client.MatchingFields{"spec.groupRef.name": g.Name}),
		w.live.List(ctx, &groups, client.InNamespace(g.Namespace), client.MatchingFields{"spec.parentRef.name": g.Name}))
	if err != nil {
		return nil, nil, fmt.Errorf("listing what is below group %s: %w", client.ObjectKeyFromObject(g), err)
	}
	var of []*v1alpha1.Project
	for i := range projects.Items {
		if p := &projects.Items[i]; p.Spec.GroupRef.UID == string(g.UID) {
			of = append(of, p)
		}
	}
	var children []*v1alpha1.Group
	for i := range groups.Items {
		if ref := groups.Items[i].Spec.ParentRef; ref != nil && ref.UID == string(g.UID) {
			children = append(children, &groups.Items[i])
		}
	}
	return of, children, nil
}

// Roots returns all groups without a parent. It reads past the cache.
func (w *Writer) Roots(ctx context.Context) (roots []*v1alpha1.Group, err error) {
	var groups v1alpha1.GroupList
	if err := w.live.List(ctx, &groups); err != nil {
		return nil, fmt.Errorf("listing the root groups: %w", err)
	}
	for i := range groups.Items {
		if g := &groups.Items[i]; g.Spec.ParentRef == nil {
			roots = append(roots, g)
		}
	}
	return roots, nil
}

// Reread replaces obj with the object of its name. It reads past the cache.
func (w *Writer) Reread(ctx context.Context, obj client.Object) error {
	return reread(ctx, w.live, obj)
}

// DiscardBelow is Discard for a project or group that Below returned for a group. It reports whether obj is gone: if it was moved elsewhere in
// the meantime, it stays.
func (w *Writer) DiscardBelow(ctx context.Context, obj client.Object, g *v1alpha1.Group) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	uid, stays := obj.GetUID(), false
	err = retry.RetryOnConflict(contention, func() error {
		if err := reread(ctx, w.live, obj); err != nil {
			return err
		}
		if ref := above(obj); obj.GetUID() != uid || ref == nil || ref.UID != string(g.UID) {
			stays = true
			return nil
		}
		version := obj.GetResourceVersion()
		return w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil || stays:
		return false, explain(err)
	default:
		return true, w.unseen(ctx, obj)
	}
}

// above returns the reference of a project or group to its parent group. It is nil for a root group and for other kinds.
func above(obj client.Object) *v1alpha1.Reference {
	switch o := obj.(type) {
	case *v1alpha1.Project:
		return &o.Spec.GroupRef
	case *v1alpha1.Group:
		return o.Spec.ParentRef
	default:
		return nil
	}
}

// keep discards a new project or group, and returns ErrGone, if the parent group that it names by name and UID was deleted in the meantime.
// The caller who deleted that group may not have seen the new object, which no caller could reach.
func (w *Writer) keep(ctx context.Context, obj client.Object) error {
	above := above(obj)
	if above == nil || above.Name == "" || above.UID == "" {
		return nil
	}
	// The object exists now, even if the client has disconnected.
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), aboveTimeout)
	defer cancel()
	var g v1alpha1.Group
	err := w.live.Get(looking, client.ObjectKey{Namespace: obj.GetNamespace(), Name: above.Name}, &g)
	switch {
	case err == nil && string(g.UID) == above.UID && g.DeletionTimestamp.IsZero():
		return nil
	case err == nil, apierrors.IsNotFound(err):
		err = fmt.Errorf("group %s: %w", above.Name, ErrGone)
	default:
		err = fmt.Errorf("checking whether group %s still exists: %w", above.Name, err)
	}
	return errors.Join(err, w.Discard(ctx, obj))
}
