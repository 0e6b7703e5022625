package milestones

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

type createRequest struct {
	Title       string                       `param:"title" required:"" example:"1.0" doc:"Title, unique in the project and the groups above."`
	Description string                       `param:"description" doc:"Description in Markdown."`
	StartDate   endpoint.Optional[time.Time] `param:"start_date" doc:"First day."`
	DueDate     endpoint.Optional[time.Time] `param:"due_date" doc:"Last day."`
}

func (f *Family) create(ctx context.Context, s auth.Subject, r *createRequest) (entity.Milestone, error) {
	m := milestone.Milestone{
		In: item.Place(s.Scope), Title: strings.TrimSpace(r.Title), Description: r.Description, State: milestone.Active,
		Start: entity.StoreDay(r.StartDate, ""), Due: entity.StoreDay(r.DueDate, ""),
	}
	rivals, err := f.rivals(ctx, s.Scope)
	if err != nil {
		return entity.Milestone{}, err
	}
	err = f.Activity.Database.Atomically(ctx, "creating a milestone", func(ctx context.Context, _ bun.IDB) error {
		if err := f.check(ctx, m, rivals); err != nil {
			return err
		}
		return f.Activity.Milestones.Create(ctx, &m)
	})
	if err != nil {
		return entity.Milestone{}, answer(err)
	}
	f.did(ctx, "create", s.Scope, m)
	return f.show(s.Scope, m), nil
}

type updateRequest struct {
	milestoneRequest
	Title       endpoint.Optional[string]    `param:"title" atLeastOne:"change" example:"1.0.1" doc:"Title, unique in the project and the groups above."`
	Description endpoint.Optional[string]    `param:"description" atLeastOne:"change" doc:"Description in Markdown; null removes it."`
	StartDate   endpoint.Optional[time.Time] `param:"start_date" atLeastOne:"change" doc:"First day; null removes it."`
	DueDate     endpoint.Optional[time.Time] `param:"due_date" atLeastOne:"change" doc:"Last day; null removes it."`
	StateEvent  string                       `param:"state_event" atLeastOne:"change" values:"close,activate" doc:"Whether to close the milestone or to activate it again."`
}

// apply sets the fields of a milestone that the request contains.
func (r *updateRequest) apply(m *milestone.Milestone) {
	if r.Title.Set {
		m.Title = strings.TrimSpace(r.Title.Value)
	}
	if r.Description.Set {
		m.Description = r.Description.Value
	}
	m.Start, m.Due = entity.StoreDay(r.StartDate, m.Start), entity.StoreDay(r.DueDate, m.Due)
	switch r.StateEvent {
	case "close":
		m.State = milestone.Closed
	case "activate":
		m.State = milestone.Active
	}
}

func (f *Family) update(ctx context.Context, s auth.Subject, r *updateRequest) (entity.Milestone, error) {
	rivals, err := f.rivals(ctx, s.Scope)
	if err != nil {
		return entity.Milestone{}, err
	}
	m, err := f.Activity.Milestones.Update(ctx, s.Scope.Target().GetUID(), r.MilestoneID, func(ctx context.Context, m *milestone.Milestone) error {
		title := m.Title
		if r.apply(m); m.Title == title {
			return f.check(ctx, *m, nil) // others can have got it since
		}
		return f.check(ctx, *m, rivals)
	})
	if err != nil {
		return entity.Milestone{}, answer(err)
	}
	f.did(ctx, "update", s.Scope, m)
	return f.show(s.Scope, m), nil
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *milestoneRequest) (endpoint.None, error) {
	var m milestone.Milestone
	err := f.Activity.Database.Atomically(ctx, "deleting a milestone", func(ctx context.Context, _ bun.IDB) (err error) {
		if m, err = f.Activity.Milestones.Get(ctx, s.Scope.Target().GetUID(), r.MilestoneID); err != nil {
			return err
		}
		if err := f.Activity.Issues.ForgetMilestone(ctx, m.ID); err != nil {
			return err
		}
		if err := f.Activity.MergeRequests.ForgetMilestone(ctx, m.ID); err != nil {
			return err
		}
		return f.Activity.Milestones.Delete(ctx, m.ID)
	})
	if err != nil {
		return endpoint.None{}, answer(err)
	}
	f.did(ctx, "delete", s.Scope, m)
	return endpoint.None{}, nil
}

// did records a write for the audit.
func (f *Family) did(ctx context.Context, verb string, in catalog.Scope, m milestone.Milestone) {
	audit.From(ctx).Did(verb, audit.Milestone, in.Path()+"%"+m.Title, m.ID)
}

// check validates a milestone. Its title must differ from the titles of all milestones of the rivals.
func (f *Family) check(ctx context.Context, m milestone.Milestone, rivals []types.UID) error {
	var a endpoint.Attributes
	if m.Title == "" {
		a.Refuse("title", "can't be blank")
	}
	a.Text("title", m.Title, item.MaxTitle)
	a.Text("description", m.Description, item.MaxDescription)
	if m.Start != "" && m.Due != "" && m.Due < m.Start {
		a.Refuse("due_date", "must be greater than start date")
	}
	if err := a.Err(); err != nil || rivals == nil {
		return err
	}
	known, err := f.Activity.Milestones.Taken(ctx, m.Title, m.ID, rivals...)
	if err == nil && known {
		err = taken()
	}
	return err
}

func taken() error {
	return endpoint.Invalid(map[string][]string{"title": {"already being used for another group or project milestone."}})
}

// rivals returns the projects and groups in which a milestone of a project or group must not have the title of another one: the project or group
// itself, the groups above, and the projects directly in the group.
func (f *Family) rivals(ctx context.Context, in catalog.Scope) ([]types.UID, error) {
	all := levels(in)
	if in.Project != nil {
		return all, nil
	}
	below, err := f.projects(ctx, in)
	return slices.AppendSeq(all, maps.Keys(below)), err
}
