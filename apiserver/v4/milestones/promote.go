package milestones

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// promote replaces the milestones with the title of one, in all projects directly in the group, with a milestone of the group.
func (f *Family) promote(ctx context.Context, s auth.Project, r *milestoneRequest) (entity.Milestone, error) {
	above := catalog.Scope{Groups: s.Scope.Groups}
	if namespace.Personal(above.Groups[0]) {
		return entity.Milestone{}, endpoint.Message(http.StatusBadRequest, "Project does not belong to a group.")
	}
	access, err := f.Guard.Access(ctx, s.Caller, above)
	if err != nil {
		return entity.Milestone{}, err
	}
	if !s.Has(access, auth.WriteGroupMilestones) {
		return entity.Milestone{}, s.Denied(auth.WriteGroupMilestones)
	}
	projects, err := f.projects(ctx, above)
	if err != nil {
		return entity.Milestone{}, err
	}
	var into milestone.Milestone
	var merged []milestone.Milestone
	err = f.Activity.Database.Atomically(ctx, "promoting a milestone", func(ctx context.Context, _ bun.IDB) error {
		m, err := f.Activity.Milestones.Get(ctx, s.Scope.Project.UID, r.MilestoneID)
		if err != nil {
			return err
		}
		into = milestone.Milestone{In: item.Place(above), Title: m.Title, Description: m.Description, State: m.State, Start: m.Start, Due: m.Due}
		if err := f.check(ctx, into, levels(above)); err != nil {
			return err
		}
		if err := f.Activity.Milestones.Create(ctx, &into); err != nil {
			return err
		}
		merged, err = f.merge(ctx, into, slices.Collect(maps.Keys(projects)))
		return err
	})
	if err != nil {
		return entity.Milestone{}, answer(err)
	}
	f.did(ctx, "create", above, into)
	for _, m := range merged {
		f.did(ctx, "delete", catalog.Scope{Project: projects[m.In.UID], Groups: above.Groups}, m)
	}
	return f.show(above, into), nil
}

// merge gives the items of all milestones with the same title in some projects another milestone, deletes those milestones, and returns them.
func (f *Family) merge(ctx context.Context, into milestone.Milestone, projects []types.UID) ([]milestone.Milestone, error) {
	merged, err := f.Activity.Milestones.Titled(ctx, into.Title, projects...)
	if err != nil {
		return nil, err
	}
	for _, m := range merged {
		if err := f.Activity.Issues.ReplaceMilestone(ctx, m.ID, into.ID); err != nil {
			return nil, err
		}
		if err := f.Activity.MergeRequests.ReplaceMilestone(ctx, m.ID, into.ID); err != nil {
			return nil, err
		}
		if err := f.Activity.Milestones.Delete(ctx, m.ID); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// projects returns the projects directly in a group by their UIDs.
func (f *Family) projects(ctx context.Context, in catalog.Scope) (map[types.UID]*v1alpha1.Project, error) {
	all := map[types.UID]*v1alpha1.Project{}
	below, err := catalog.List[*v1alpha1.Project](ctx, f.Catalog, catalog.IndexGroup, in.Keys()...)
	for _, p := range below {
		all[p.UID] = p
	}
	return all, err
}

// levels returns a project or group and the groups above it.
func levels(in catalog.Scope) (all []types.UID) {
	for _, level := range in.Levels() {
		all = append(all, level.Target().GetUID())
	}
	return all
}
