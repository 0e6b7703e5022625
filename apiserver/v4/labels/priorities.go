package labels

import (
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// withPriority returns the priorities with the priority of a title replaced, or removed if it is nil.
func withPriority(all []v1alpha1.LabelPriority, title string, priority *int32) []v1alpha1.LabelPriority {
	var changed []v1alpha1.LabelPriority
	for _, p := range all {
		if p.Title != title {
			changed = append(changed, p)
			continue
		}
		if priority != nil {
			changed = append(changed, v1alpha1.LabelPriority{Title: title, Priority: *priority})
			priority = nil
		}
	}
	if priority != nil {
		changed = append(changed, v1alpha1.LabelPriority{Title: title, Priority: *priority})
	}
	return changed
}

// priorityOf returns the declared priority of a title, or nil.
func priorityOf(all []v1alpha1.LabelPriority, title string) *int32 {
	for i := range all {
		if all[i].Title == title {
			return &all[i].Priority
		}
	}
	return nil
}

// renamed returns the priorities with the priority of one title moved to another title. It is idempotent.
func renamed(all []v1alpha1.LabelPriority, from, to string) []v1alpha1.LabelPriority {
	priority := priorityOf(all, from)
	if priority == nil {
		return all
	}
	return withPriority(withPriority(all, from, nil), to, priority)
}

// prioritize returns a change of a project that sets or removes the priority of a group's label.
func prioritize(title string, priority *int32) func(*v1alpha1.Project) error {
	return func(p *v1alpha1.Project) error {
		p.Spec.LabelPriorities = withPriority(p.Spec.LabelPriorities, title, priority)
		return nil
	}
}

// reprioritize changes the priorities of labels in all projects below a group, except projects that REST callers may not change. It returns
// the new state of p, which is one of them, or nil.
func (f *Family) reprioritize(
	ctx context.Context, of catalog.Scope, p *v1alpha1.Project, change func([]v1alpha1.LabelPriority) []v1alpha1.LabelPriority,
) (*v1alpha1.Project, error) {
	below, err := f.Catalog.ProjectsBelow(ctx, of.Groups[0])
	if err != nil {
		return nil, err
	}
	for _, one := range below {
		if slices.Equal(one.Spec.LabelPriorities, change(one.Spec.LabelPriorities)) {
			continue
		}
		one, err := f.projects.UpdateUnasked(ctx, one, func(one *v1alpha1.Project) error {
			one.Spec.LabelPriorities = change(one.Spec.LabelPriorities)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if p != nil && one.UID == p.UID {
			p = one
		}
	}
	return p, nil
}
