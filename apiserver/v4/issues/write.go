package issues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// details are the parameters that the creation and the update of an issue have in common.
type details struct {
	Description  endpoint.Optional[string]    `param:"description" doc:"Description in Markdown."`
	Labels       endpoint.Optional[[]string]  `param:"labels" comma:"" doc:"Titles of all labels. Unknown ones are created if the caller can create labels."`
	AssigneeIDs  endpoint.Optional[[]int64]   `param:"assignee_ids" comma:"" doc:"Ids of all assignees; 0 or an empty list for none. Users who cannot see the project are ignored."`
	AssigneeID   endpoint.Optional[int64]     `param:"assignee_id" doc:"Id of the only assignee; 0 for none. Deprecated."`
	MilestoneID  endpoint.Optional[int64]     `param:"milestone_id" doc:"Id of a milestone of the project or of a group above; 0 or an unknown id for none."`
	DueDate      endpoint.Optional[time.Time] `param:"due_date" doc:"Last day, as in 2026-12-31; empty for none."`
	Weight       endpoint.Optional[int64]     `param:"weight" minimum:"0" doc:"Weight; null for none."`
	Confidential endpoint.Optional[bool]      `param:"confidential" doc:"Whether only Reporters, the author and the assignees see the issue."`
	Type         endpoint.Optional[string]    `param:"issue_type" values:"issue,incident,test_case,task" doc:"Type of the issue."`
	EpicID       endpoint.Optional[int64]     `param:"epic_id" doc:"Id of an epic of a group above; 0 for none."`
}

type createRequest struct {
	Title string `param:"title" required:"" example:"The application crashes" doc:"Title."`
	details
	CreatedAt endpoint.Optional[time.Time] `param:"created_at" doc:"When the issue was created. Ignored unless the caller is an owner or administrator."`
}

type updateRequest struct {
	Title endpoint.Optional[string] `param:"title" blank:"refuse" example:"The application crashes" doc:"Title."`
	details
	AddLabels        []string                `param:"add_labels" comma:"" doc:"Titles of labels to add. Unknown ones are created if the caller can create labels."`
	RemoveLabels     []string                `param:"remove_labels" comma:"" doc:"Titles of labels to remove."`
	StateEvent       string                  `param:"state_event" values:"close,reopen" doc:"Whether to close the issue, or to open it again."`
	DiscussionLocked endpoint.Optional[bool] `param:"discussion_locked" doc:"Whether only members can write notes."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Detailed, error) {
	author, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	i := issue.Issue{In: item.Place(s.Scope), Author: item.User(author), Title: item.OneLine(r.Title), Type: "issue"}
	if s.Has(s.Access, auth.DestroyIssues) {
		i.Created = r.CreatedAt.Value.UTC()
		if i.Created.After(f.Clock.Now()) || i.Created.Year() < 1 {
			return Detailed{}, endpoint.Parameters("created_at is invalid").Describe("created_at must not be in the future.")
		}
	}
	r.details.apply(&i, true)
	if i.Title == "" {
		return Detailed{}, endpoint.Invalid(map[string][]string{"title": {"can't be blank"}})
	}
	if err := check(i); err != nil {
		return Detailed{}, err
	}
	m, err := f.metadata(ctx, s.Subject, &updateRequest{details: r.details})
	if err != nil {
		return Detailed{}, err
	}
	m.apply(&i)
	if err := f.Activity.Issues.Create(ctx, &i); err != nil {
		return Detailed{}, err
	}
	did(ctx, "create", s.Scope, i)
	return f.showOne(ctx, s.Subject, s.Scope, i)
}

// apply gives an issue the description that was sent. If all is true, it also sets the type and whether the issue is confidential.
func (d details) apply(i *issue.Issue, all bool) {
	if d.Description.Set {
		i.Description = d.Description.Value // null clears it
	}
	if all {
		i.Confidential, i.Type = d.Confidential.Or(i.Confidential), d.Type.Or(i.Type)
	}
}

// check refuses texts that are too long.
func check(i issue.Issue) error {
	var a endpoint.Attributes
	item.CheckTexts(&a, i.Title, i.Description)
	return a.Err()
}

func (f *Family) update(ctx context.Context, s auth.ProjectRecord[item.Issue], r *updateRequest) (Detailed, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	admin := s.Has(s.Access, auth.AdminIssues)
	if !admin && !people(s.Record.Issue).Have(u.UID) {
		return Detailed{}, s.Denied(auth.AdminIssues)
	}
	if err := check(issue.Issue{Title: item.OneLine(r.Title.Value), Description: r.Description.Value}); err != nil {
		return Detailed{}, err
	}
	m, err := f.metadata(ctx, s.Subject, r)
	if err != nil {
		return Detailed{}, err
	}
	var i issue.Issue
	err = f.Activity.Database.Atomically(ctx, "changing an issue", func(ctx context.Context, _ bun.IDB) (err error) {
		var became stateevent.State
		i, err = f.Activity.Issues.Update(ctx, s.Scope.Project.UID, s.Record.IID, func(i *issue.Issue) error {
			if r.Title.Set {
				i.Title = item.OneLine(r.Title.Value)
			}
			r.details.apply(i, admin)
			m.apply(i)
			became = f.turn(i, r.StateEvent, item.User(u))
			return nil
		})
		if err != nil || became == "" {
			return err
		}
		return item.RecordState(ctx, f.Activity, i.In, i.Item(), became, item.User(u), i.Updated)
	})
	if err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, "update", s.Scope, i)
	return f.showOne(ctx, s.Subject, s.Scope, i)
}

// turn closes or reopens an issue and returns its new state, or "" if the state does not change.
func (f *Family) turn(i *issue.Issue, event string, by database.User) stateevent.State {
	switch {
	case event == "close" && i.Close(by, f.Clock.Now()):
		return stateevent.Closed
	case event == "reopen" && i.State == issue.Closed:
		i.State, i.Closer, i.ClosedAt = issue.Opened, database.User{}, time.Time{}
		return stateevent.Reopened
	default:
		return ""
	}
}

func (f *Family) remove(ctx context.Context, s auth.ProjectRecord[item.Issue], _ *endpoint.None) (endpoint.None, error) {
	i := s.Record.Issue
	err := f.Activity.Database.Atomically(ctx, "deleting an issue", func(ctx context.Context, _ bun.IDB) error {
		now, err := f.Activity.Issues.Get(ctx, i.In.UID, i.IID)
		if err != nil {
			return err
		}
		if err := item.CheckUnmodified(ctx, now.Updated); err != nil {
			return err
		}
		return item.Remove(ctx, f.Activity, i.Item(), func(ctx context.Context) error { return f.Activity.Issues.Delete(ctx, i.ID) })
	})
	if err != nil {
		return endpoint.None{}, answer(err)
	}
	did(ctx, "delete", s.Scope, i)
	return endpoint.None{}, nil
}

// answer returns the answer for an error of the store.
func answer(err error) error {
	if errors.Is(err, issue.ErrNotFound) {
		return item.Issue{}.Missing()
	}
	return err
}

// did records a write for the audit.
func did(ctx context.Context, verb string, in catalog.Scope, i issue.Issue) {
	audit.From(ctx).Did(verb, audit.Issue, fmt.Sprintf("%s#%d", in.Path(), i.IID), i.ID)
}
