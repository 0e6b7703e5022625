package milestones

import (
	"context"
	"net/http"

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
		return f.merge(ctx, into, projects)
	})
	if err != nil {
		return entity.Milestone{}, answer(err)
	}
	f.did(ctx, "create", above, into)
	return f.show(above, into), nil
}

// merge gives the items of all milestones with the same title in some projects another milestone, and deletes those milestones.
func (f *Family) merge(ctx context.Context, into milestone.Milestone, projects []types.UID) error {
	merged, err := f.Activity.Milestones.Titled(ctx, into.Title, projects...)
	if err != nil {
		return err
	}
	for _, id := range merged {
		if err := f.Activity.Issues.ReplaceMilestone(ctx, id, into.ID); err != nil {
			return err
		}
		if err := f.Activity.MergeRequests.ReplaceMilestone(ctx, id, into.ID); err != nil {
			return err
		}
		if err := f.Activity.Milestones.Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// projects returns the projects directly in a group.
func (f *Family) projects(ctx context.Context, in catalog.Scope) (all []types.UID, err error) {
	below, err := catalog.List[*v1alpha1.Project](ctx, f.Catalog, catalog.IndexGroup, in.Keys()...)
	for _, p := range below {
		all = append(all, p.UID)
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
