package labels

import (
	"context"
	"errors"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// prioritize gives a label of a group a priority in a project, or takes it away. p has the result.
func (f *Family) prioritize(ctx context.Context, p *v1alpha1.Project, title string, priority *int32) error {
	if err := f.writer.Allow(ctx, p, p); err != nil {
		return refusal.Of(err, "")
	}
	err := f.writer.Update(ctx, p, func() error {
		p.Spec.LabelPriorities = withPriority(p.Spec.LabelPriorities, title, priority)
		return nil
	})
	return refusal.Of(err, "Project")
}

// withPriority returns the priorities with another one for a title, or none.
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

// priorityOf returns the priority that is declared for a title; nil where there is none.
func priorityOf(all []v1alpha1.LabelPriority, title string) *int32 {
	for i := range all {
		if all[i].Title == title {
			return &all[i].Priority
		}
	}
	return nil
}

// renamed returns the priorities with that of one title given to another one. Where it has been done already, nothing changes.
func renamed(all []v1alpha1.LabelPriority, from, to string) []v1alpha1.LabelPriority {
	priority := priorityOf(all, from)
	if priority == nil {
		return all
	}
	return withPriority(withPriority(all, from, nil), to, priority)
}

// reprioritize changes the priorities of labels in all projects below a group, but for those that REST callers may not change. p
// is one of them and has the result.
func (f *Family) reprioritize(
	ctx context.Context, of catalog.Scope, p *v1alpha1.Project, change func([]v1alpha1.LabelPriority) []v1alpha1.LabelPriority,
) error {
	below, err := f.catalog.ProjectsBelow(ctx, of.Groups[0])
	if err != nil {
		return err
	}
	for _, one := range below {
		if slices.Equal(one.Spec.LabelPriorities, change(one.Spec.LabelPriorities)) {
			continue
		}
		if one = one.DeepCopy(); one.UID == p.UID {
			one = p
		}
		var refused *declare.RefusedError
		err := f.writer.Allow(ctx, one, one)
		if errors.As(err, &refused) {
			continue
		}
		if err == nil {
			err = f.writer.Update(ctx, one, func() error {
				one.Spec.LabelPriorities = change(one.Spec.LabelPriorities)
				return nil
			})
		}
		if err != nil && !errors.Is(err, declare.ErrGone) {
			return refusal.Of(err, "")
		}
	}
	return nil
}
