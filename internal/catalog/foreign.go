package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// ErrReplaced says that a path or id now belongs to another tenant's group than the one that it led to. It wraps ErrNotFound.
var ErrReplaced = fmt.Errorf("now belongs to a different group, to which this entry does not apply: to mean that group, remove the entry and "+
	"add it again, or set its uid as well: %w", ErrNotFound)

// Foreign returns the scope of the group, in any namespace, that a reference in a namespace refers to. It returns ErrNotFound if the group
// does not exist, is being deleted or does not hold its full path, and ErrReplaced if the reference is recorded to have led to another group.
func (c *Catalog) Foreign(ctx context.Context, namespace string, ref v1alpha1.Reference, recorded []v1alpha1.Reference) (Scope, error) {
	g, err := c.AnyGroup(ctx, namespace, ref)
	if err != nil {
		return Scope{}, err
	}
	var s Scope
	s.Groups, err = c.Ancestors(ctx, g)
	if Misplaced(err) || err == nil && !g.DeletionTimestamp.IsZero() {
		err = ErrNotFound // other namespaces must not learn the reason
	}
	if err == nil && ref.Path == "" {
		var holder client.Object
		if holder, err = c.HolderAt(ctx, s); err == nil && holder.GetUID() != g.UID {
			err = ErrNotFound
		}
	}
	if led := ledTo(ref, recorded); err == nil && led != nil && led.UID != string(g.UID) && g.Namespace != namespace {
		err = ErrReplaced
	}
	if err != nil {
		return Scope{}, fmt.Errorf("group %s: %w", Show(ref), err)
	}
	return s, nil
}

// ledTo returns the record of the group that a reference led to; nil if there is none.
func ledTo(ref v1alpha1.Reference, recorded []v1alpha1.Reference) *v1alpha1.Reference {
	for i := range recorded {
		if sameButUID(recorded[i], ref) {
			return &recorded[i]
		}
	}
	return nil
}

// recordable reports whether a reference can come to mean a different group, of another tenant.
func recordable(ref v1alpha1.Reference) bool { return ref.Name == "" && ref.UID == "" }

// RecordForeign records to which groups references in a namespace lead, for as long as they do not change. It returns the scope for each
// reference, or the reason why it leads nowhere, which wraps ErrNotFound.
func (c *Catalog) RecordForeign(
	ctx context.Context, namespace string, refs []v1alpha1.Reference, recorded *[]v1alpha1.Reference,
) (found []Scope, failed []error, err error) {
	found, failed = make([]Scope, len(refs)), make([]error, len(refs))
	var kept []v1alpha1.Reference
	for i, ref := range refs {
		found[i], failed[i] = c.Foreign(ctx, namespace, ref, *recorded)
		if failed[i] != nil && !errors.Is(failed[i], ErrNotFound) {
			return nil, nil, failed[i]
		}
		if !recordable(ref) {
			continue
		}
		led := ledTo(ref, *recorded)
		if failed[i] == nil {
			led = &ref
			led.UID = string(found[i].Groups[0].UID)
		}
		if led != nil && !slices.Contains(kept, *led) {
			kept = append(kept, *led)
		}
	}
	*recorded = kept
	return found, failed, nil
}
