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

// aboveTimeout limits the check whether a group still exists.
const aboveTimeout = 10 * time.Second

// Below returns the projects and groups in a group's namespace that name the group by name and UID, as objects created over REST do. It
// reads past the cache. Once the group is gone, the result is complete, except for objects that Create takes back.
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

// keep removes a new project or group again, and returns ErrGone, if the group that it names by name and UID disappeared in the meantime:
// the caller who removed that group may not have seen the new object, and nobody could reach it.
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
		err = fmt.Errorf("checking whether group %s still exists: %w", above.Name, err)
	}
	return errors.Join(err, w.Discard(ctx, obj))
}
