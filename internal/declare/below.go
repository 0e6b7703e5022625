package declare

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// aboveTimeout is what there is for looking whether a group is still there.
const aboveTimeout = 10 * time.Second

// Below returns the projects and groups of a group's namespace that name the group by its name and uid, as those do that REST makes. It
// reads past the cache: when the group is gone, these are all that there will ever be, but for what Create takes back.
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

// keep takes a project or group back, and returns ErrGone, when the group that it names by name and uid has gone while it was made: whoever
// has removed that may not have seen it, and nobody could reach it.
func (w *Writer) keep(ctx context.Context, obj client.Object) error {
	var above *v1alpha1.Reference
	switch o := obj.(type) {
	case *v1alpha1.Project:
		above = &o.Spec.GroupRef
	case *v1alpha1.Group:
		above = o.Spec.ParentRef
	}
	if above == nil || above.Name == "" || above.UID == "" {
		return nil
	}
	// It is there by now, be the client there or not.
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
		err = fmt.Errorf("looking whether group %s is still there: %w", above.Name, err)
	}
	return errors.Join(err, w.Discard(ctx, obj))
}
