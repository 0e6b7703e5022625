// Package milestones is the family of the milestones of projects and groups.
package milestones

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// Family serves the milestones of projects and groups.
type Family struct{ family.Kit }

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return slices.Concat(
		table[auth.Project](f, "/projects/{id}/milestones", "project", auth.ReadMilestones, auth.WriteMilestones),
		table[auth.Group](f, "/groups/{id}/milestones", "group", auth.ReadGroupMilestones, auth.WriteGroupMilestones),
		endpoint.Table{
			endpoint.Post("/projects/{id}/milestones/{milestone_id}/promote", f.promote).Needs(auth.WriteMilestones).Asks(auth.WriteGroupMilestones).Status(http.StatusOK).
				Doc("Promote a project milestone to a group milestone, which replaces the milestones with its title in the projects directly in the group."),
		})
}

func table[S auth.Form](f *Family, path, of string, read, write endpoint.Ability) endpoint.Table {
	one := path + "/{milestone_id}"
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(read).Anonymous(endpoint.Served).
			Doc("List the milestones of a " + of + "."),
		endpoint.Get(one, auth.On[S](f.get)).Needs(read).Anonymous(endpoint.Served).
			Doc("Get a milestone of a " + of + "."),
		endpoint.Post(path, auth.On[S](f.create)).Needs(write).
			Doc("Create a milestone of a " + of + "."),
		endpoint.Put(one, auth.On[S](f.update)).Needs(write).
			Doc("Update, close or reopen a milestone of a " + of + "."),
		endpoint.Delete(one, auth.On[S](f.remove)).Needs(write).
			Doc("Delete a milestone of a " + of + ". Its issues and merge requests remain without it."),
	}
}

type listRequest struct {
	endpoint.Paging
	IIDs      []int64 `param:"iids" comma:"" doc:"Only milestones with these internal ids (iid)."`
	State     string  `param:"state" values:"active,closed,all" default:"all" doc:"Only milestones in this state."`
	Title     string  `param:"title" doc:"Only the milestone with this title."`
	Search    string  `param:"search" doc:"Part of a title or description."`
	Ancestors bool    `param:"include_ancestors" doc:"Whether milestones of the groups above that the caller sees are included."`
	Parents   bool    `param:"include_parent_milestones" doc:"Deprecated: use include_ancestors."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[entity.Milestone], error) {
	places, err := f.places(ctx, s, r.Ancestors || r.Parents)
	if err != nil {
		return endpoint.List[entity.Milestone]{}, err
	}
	filter := milestone.Filter{IIDs: r.IIDs, Title: r.Title, Search: r.Search}
	if r.State != "all" {
		filter.State = milestone.State(r.State)
	}
	at := map[types.UID]catalog.Scope{}
	for _, p := range places {
		at[p.Target().GetUID()] = p
		filter.In = append(filter.In, p.Target().GetUID())
	}
	skip, limit := r.Window()
	page, total, err := f.Activity.Milestones.List(ctx, filter, skip, limit)
	return endpoint.Cut(page, total, func(m milestone.Milestone) entity.Milestone { return f.show(at[m.In.UID], m) }), err
}

// places returns the project or group of a request, and with ancestors also the groups above that the caller sees.
func (f *Family) places(ctx context.Context, s auth.Subject, ancestors bool) ([]catalog.Scope, error) {
	levels := s.Scope.Levels()
	if !ancestors {
		return levels[:1], nil
	}
	places := levels[:1:1]
	for _, above := range levels[1:] {
		access, err := f.Guard.Access(ctx, s.Caller, above)
		if err != nil {
			return nil, err
		}
		if access.Sees() {
			places = append(places, above)
		}
	}
	return places, nil
}

type milestoneRequest struct {
	MilestoneID int64 `param:"milestone_id" doc:"Id of the milestone, not its internal id (iid)."`
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *milestoneRequest) (entity.Milestone, error) {
	m, err := f.Activity.Milestones.Get(ctx, s.Scope.Target().GetUID(), r.MilestoneID)
	return f.show(s.Scope, m), answer(err)
}

// answer converts an error of the store that callers can know.
func answer(err error) error {
	switch {
	case errors.Is(err, milestone.ErrNotFound):
		return endpoint.NotFound("")
	case errors.Is(err, milestone.ErrTaken):
		return taken()
	default:
		return err
	}
}

func (f *Family) show(in catalog.Scope, m milestone.Milestone) entity.Milestone {
	url := f.WebURL + "/" + in.Path()
	if in.Project == nil {
		url = f.WebURL + "/groups/" + in.Path()
	}
	return entity.ShowMilestone(m, url, f.Clock.Now())
}
