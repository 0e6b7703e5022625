package mergerequests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// writeTable lists the endpoints that create, update and delete merge requests.
func (f *Family) writeTable() endpoint.Table {
	return endpoint.Table{
		endpoint.Post(ofProject, f.create).Needs(auth.CreateMergeRequests).Asks(auth.ReadMergeRequests, auth.UpdateMergeRequests, auth.WriteLabels).
			Also(http.StatusConflict, http.StatusUnprocessableEntity).
			Doc("Create a merge request from a branch of the project. Labels, assignees, reviewers and milestone are ignored unless the caller is at least a Developer of the target."),
		endpoint.Put(one, f.update).Needs(auth.ReadMergeRequests).Asks(auth.UpdateMergeRequests, auth.WriteLabels, auth.PushCode).Found(f.items.MergeRequest).
			Also(http.StatusConflict, http.StatusUnprocessableEntity).
			Doc("Update, close or reopen a merge request. Its author and assignees can change everything except its labels, assignees, reviewers, milestone and lock."),
		endpoint.Delete(one, f.remove).Needs(auth.DestroyMergeRequests).Found(f.items.MergeRequest).Conditional().Also(http.StatusConflict).
			Doc("Delete a merge request with its notes, reactions and state events."),
	}
}

type createRequest struct {
	Title                string                      `param:"title" required:"" example:"Draft: Add a search" doc:"Title. It begins with Draft: if the merge request is a draft."`
	SourceBranch         string                      `param:"source_branch" required:"" example:"search" doc:"Branch to merge. It need not exist yet."`
	TargetBranch         string                      `param:"target_branch" required:"" example:"main" doc:"Branch to merge into."`
	TargetProjectID      endpoint.Optional[int64]    `param:"target_project_id" doc:"Id of the project that has the target branch: this one by default, or one of the same network of forks."`
	AssigneeID           endpoint.Optional[int64]    `param:"assignee_id" doc:"Id of the only assignee; 0 for none."`
	AssigneeIDs          endpoint.Optional[[]int64]  `param:"assignee_ids" comma:"" doc:"Ids of all assignees; 0 or an empty list for none. Users who cannot see the project are ignored."`
	ReviewerIDs          endpoint.Optional[[]int64]  `param:"reviewer_ids" comma:"" doc:"Ids of all reviewers; 0 or an empty list for none. Users who cannot see the project are ignored."`
	Description          endpoint.Optional[string]   `param:"description" doc:"Description in Markdown."`
	Labels               endpoint.Optional[[]string] `param:"labels" comma:"" doc:"Titles of all labels. Unknown ones are created if the caller can create labels."`
	MilestoneID          endpoint.Optional[int64]    `param:"milestone_id" doc:"Id of a milestone of the target project or of a group above; 0 or an unknown id for none."`
	RemoveSourceBranch   endpoint.Optional[bool]     `param:"remove_source_branch" doc:"Whether the merge deletes the source branch."`
	AllowCollaboration   endpoint.Optional[bool]     `param:"allow_collaboration" doc:"Whether those who can merge can push to the source branch in a fork."`
	AllowMaintainer      endpoint.Optional[bool]     `param:"allow_maintainer_to_push" doc:"Same as allow_collaboration."`
	Squash               endpoint.Optional[bool]     `param:"squash" doc:"Whether the merge makes one commit of all, unless squash_option of the project overrides it."`
	ApprovalsBeforeMerge endpoint.Optional[int64]    `param:"approvals_before_merge" minimum:"0" maximum:"100" doc:"Deprecated. Number of approvals that the merge request needs, if the project does not ask for more. Ignored if the project refuses overrides."`
}

// updateRequest has its fields in the order of the message about a request without any of them.
type updateRequest struct {
	AssigneeID         endpoint.Optional[int64]    `param:"assignee_id" atLeastOne:"all" doc:"Id of the only assignee; 0 for none."`
	AssigneeIDs        endpoint.Optional[[]int64]  `param:"assignee_ids" atLeastOne:"all" comma:"" doc:"Ids of all assignees; 0 or an empty list for none. Users who cannot see the project are ignored."`
	ReviewerIDs        endpoint.Optional[[]int64]  `param:"reviewer_ids" atLeastOne:"all" comma:"" doc:"Ids of all reviewers; 0 or an empty list for none. Users who cannot see the project are ignored."`
	Description        endpoint.Optional[string]   `param:"description" atLeastOne:"all" doc:"Description in Markdown; null removes it."`
	Labels             endpoint.Optional[[]string] `param:"labels" atLeastOne:"all" comma:"" doc:"Titles of all labels. Unknown ones are created if the caller can create labels."`
	AddLabels          []string                    `param:"add_labels" atLeastOne:"all" comma:"" doc:"Titles of labels to add. Unknown ones are created if the caller can create labels."`
	RemoveLabels       []string                    `param:"remove_labels" atLeastOne:"all" comma:"" doc:"Titles of labels to remove."`
	MilestoneID        endpoint.Optional[int64]    `param:"milestone_id" atLeastOne:"all" doc:"Id of a milestone of the target project or of a group above; 0 or an unknown id for none."`
	RemoveSourceBranch endpoint.Optional[bool]     `param:"remove_source_branch" atLeastOne:"all" doc:"Whether the merge deletes the source branch. Ignored unless the caller can push to its project."`
	AllowCollaboration endpoint.Optional[bool]     `param:"allow_collaboration" atLeastOne:"all" doc:"Whether those who can merge can push to the source branch in a fork. Ignored unless the caller can push to the fork."`
	AllowMaintainer    endpoint.Optional[bool]     `param:"allow_maintainer_to_push" atLeastOne:"all" doc:"Same as allow_collaboration."`
	Squash             endpoint.Optional[bool]     `param:"squash" atLeastOne:"all" doc:"Whether the merge makes one commit of all, unless squash_option of the project overrides it."`
	TargetBranch       endpoint.Optional[string]   `param:"target_branch" atLeastOne:"all" blank:"refuse" example:"main" doc:"Branch to merge into. Ignored after the merge."`
	Title              endpoint.Optional[string]   `param:"title" atLeastOne:"all" blank:"refuse" example:"Add a search" doc:"Title. It begins with Draft: if the merge request is a draft."`
	StateEvent         string                      `param:"state_event" atLeastOne:"all" values:"close,reopen" doc:"Whether to close the merge request, or to open it again."`
	DiscussionLocked   endpoint.Optional[bool]     `param:"discussion_locked" atLeastOne:"all" doc:"Whether only members can write notes."`
}

// changes returns the parameters that a creation and an update have in common.
func (r *createRequest) changes() *updateRequest {
	return &updateRequest{
		AssigneeID: r.AssigneeID, AssigneeIDs: r.AssigneeIDs, ReviewerIDs: r.ReviewerIDs, Description: r.Description, Labels: r.Labels,
		MilestoneID: r.MilestoneID, RemoveSourceBranch: r.RemoveSourceBranch, AllowCollaboration: r.AllowCollaboration,
		AllowMaintainer: r.AllowMaintainer, Squash: r.Squash,
	}
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Detailed, error) {
	author, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	target, err := f.target(ctx, s, r.TargetProjectID)
	if err != nil {
		return Detailed{}, err
	}
	m := mergerequest.MergeRequest{
		In: item.Place(target.Scope), Source: item.Place(s.Scope), SourceBranch: r.SourceBranch, TargetBranch: r.TargetBranch,
		Title: item.OneLine(r.Title), Description: r.Description.Value, Author: item.User(author),
		Squash: target.Scope.Project.Spec.MergeRequests.Squash.Default(),
	}
	if err := check(m); err != nil {
		return Detailed{}, err
	}
	c, err := f.changes(ctx, target, r.changes())
	if err != nil {
		return Detailed{}, err
	}
	if !target.Scope.Project.Spec.MergeRequests.Approvals.RefuseOverrides {
		m.ApprovalsRequired = r.ApprovalsBeforeMerge.Or(0)
	}
	c.source = true // creating needs the same role as pushing
	c.apply(&m)
	if err := distinct(m); err != nil {
		return Detailed{}, err
	}
	err = f.Activity.Database.Atomically(ctx, "creating a merge request", func(ctx context.Context, _ bun.IDB) error {
		if err := f.Activity.MergeRequests.Create(ctx, &m); err != nil {
			return err
		}
		return f.limitOutsider(ctx, target, m)
	})
	if err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, "create", target.Scope, m)
	return f.opened(ctx, target, m)
}

// opened shows a merge request that was opened, and creates its pipeline.
func (f *Family) opened(ctx context.Context, in auth.Subject, m mergerequest.MergeRequest) (Detailed, error) {
	m, err := f.refresh(ctx, m)
	if err != nil {
		return Detailed{}, err
	}
	if err := f.launcher.Opened(ctx, m, in.Caller); err != nil {
		log.FromContext(ctx).Error(err, "Failed to create the pipeline of a merge request") // a push creates the next one
	}
	return f.refreshed(ctx, in, m)
}

// target returns the project that has the target branch as the subject of the request.
func (f *Family) target(ctx context.Context, s auth.Project, id endpoint.Optional[int64]) (auth.Subject, error) {
	own := s.Scope.Project
	if id.Or(own.RESTID()) == own.RESTID() {
		return s.Subject, nil
	}
	scope, err := f.Guard.Locate(ctx, s.Subject, auth.ReadMergeRequests, id.Value)
	if err != nil {
		return auth.Subject{}, err
	}
	related, err := f.Catalog.Related(ctx, own, scope.Project)
	if err == nil && !related {
		err = endpoint.Unprocessable("The source project is not a fork of the target project")
	}
	if err != nil {
		return auth.Subject{}, err
	}
	if scope.Project, err = f.Guard.Repository(ctx, scope.Project); err != nil {
		return auth.Subject{}, err
	}
	target := s.Subject
	target.Scope = scope
	target.Access, err = f.Guard.Access(ctx, s.Caller, scope)
	return target, err
}

// check refuses texts that are too long, and branches that cannot exist.
func check(m mergerequest.MergeRequest) error {
	var a endpoint.Attributes
	item.CheckTexts(&a, m.Title, m.Description)
	for _, text := range []struct{ name, value string }{{"title", m.Title}, {"source_branch", m.SourceBranch}, {"target_branch", m.TargetBranch}} {
		if text.value == "" {
			a.Refuse(text.name, "can't be blank")
		} else if text.name != "title" && !ref.IsBranchName(text.value) {
			a.Refuse(text.name, "is invalid")
		}
	}
	return a.Err()
}

// distinct refuses to merge a branch into itself.
func distinct(m mergerequest.MergeRequest) error {
	if m.Source.UID == m.In.UID && m.SourceBranch == m.TargetBranch {
		return endpoint.Unprocessable("You can't use same project/branch for source and target")
	}
	return nil
}

// answer returns the answer for an error of the store.
func answer(err error) error {
	var duplicate *mergerequest.DuplicateError
	switch {
	case errors.As(err, &duplicate):
		return endpoint.Conflicts(duplicate.Error())
	case errors.Is(err, mergerequest.ErrNotFound):
		return item.MergeRequest{}.Missing()
	case errors.Is(err, mergerequest.ErrOutdated):
		return endpoint.Conflict("The merge request has changed meanwhile. Please try again.")
	case errors.Is(err, mergerequest.ErrLocked):
		return endpoint.Conflict("The merge request is being merged. Please try again after the merge.")
	default:
		return err
	}
}

// refreshed shows a merge request after it was brought up to date with its branches.
func (f *Family) refreshed(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (Detailed, error) {
	m, err := f.refresh(ctx, m)
	if err != nil {
		return Detailed{}, err
	}
	d, err := f.detail(ctx, s, m)
	if err != nil {
		return Detailed{}, err
	}
	return f.diverged(ctx, m, d)
}

func (f *Family) update(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *updateRequest) (Detailed, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	if !s.Has(s.Access, auth.UpdateMergeRequests) && !takesPart(s.Record.MergeRequest, u.UID) {
		return Detailed{}, s.Denied(auth.UpdateMergeRequests)
	}
	m := s.Record.MergeRequest
	r.texts(&m)
	if err := check(m); err != nil {
		return Detailed{}, err
	}
	c, err := f.changes(ctx, s.Subject, r)
	if err != nil {
		return Detailed{}, err
	}
	if c.source, err = f.pushesToSource(ctx, s.Subject, m); err != nil {
		return Detailed{}, err
	}
	err = f.Activity.Database.Atomically(ctx, "changing a merge request", func(ctx context.Context, _ bun.IDB) (err error) {
		var became stateevent.State
		m, err = f.Activity.MergeRequests.Update(ctx, s.Scope.Project.UID, m.IID, func(m *mergerequest.MergeRequest) error {
			r.texts(m)
			c.apply(m)
			became = f.turn(m, r.StateEvent, item.User(u))
			return distinct(*m)
		})
		if err == nil && became == stateevent.Reopened {
			err = f.limitOutsider(ctx, s.Subject, m)
		}
		if err != nil || became == "" {
			return err
		}
		return item.RecordState(ctx, f.Activity, m.In, m.Item(), became, item.User(u), m.Updated)
	})
	if err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, "update", s.Scope, m)
	return f.refreshed(ctx, s.Subject, m)
}

// texts changes the title and the target branch of a merge request.
func (r *updateRequest) texts(m *mergerequest.MergeRequest) {
	if r.Title.Set {
		m.Title = item.OneLine(r.Title.Value)
	}
	if r.Description.Set {
		m.Description = r.Description.Value // null clears it
	}
	if target := r.TargetBranch.Or(m.TargetBranch); target != m.TargetBranch && (m.State == mergerequest.Opened || m.State == mergerequest.Closed) {
		m.TargetBranch, m.MergeStatus = target, mergerequest.Unchecked
	}
}

// takesPart reports whether a user has written a merge request or is assigned to it.
func takesPart(m mergerequest.MergeRequest, u types.UID) bool {
	return append(item.People{m.Author}, m.Assignees...).Have(u)
}

// pushesToSource reports whether the caller can push to the project that has the source branch.
func (f *Family) pushesToSource(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (bool, error) {
	source := s.Scope
	if m.Source.UID != m.In.UID {
		var err error
		source, err = f.Guard.Project(ctx, strconv.FormatInt(m.Source.ID, 10))
		if errors.Is(err, catalog.ErrNotFound) || err == nil && source.Project.UID != m.Source.UID {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	access, err := f.Guard.Access(ctx, s.Caller, source)
	return s.Has(access, auth.PushCode), err
}

// turn closes or reopens a merge request and returns its new state, or "" if the state does not change.
func (f *Family) turn(m *mergerequest.MergeRequest, event string, by database.User) stateevent.State {
	switch {
	case event == "close" && m.State == mergerequest.Opened:
		m.State, m.Closer, m.ClosedAt = mergerequest.Closed, by, f.Clock.Now().UTC()
		return stateevent.Closed
	case event == "reopen" && m.State == mergerequest.Closed:
		m.State, m.Closer, m.ClosedAt = mergerequest.Opened, database.User{}, time.Time{}
		m.MergeStatus = mergerequest.Unchecked
		return stateevent.Reopened
	default:
		return ""
	}
}

func (f *Family) remove(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (endpoint.None, error) {
	m := s.Record.MergeRequest
	err := f.Activity.Database.Atomically(ctx, "deleting a merge request", func(ctx context.Context, _ bun.IDB) error {
		now, err := f.Activity.MergeRequests.Get(ctx, m.In.UID, m.IID)
		if err != nil {
			return err
		}
		if err := item.CheckUnmodified(ctx, now.Updated); err != nil {
			return err
		}
		return item.Remove(ctx, f.Activity, m.Item(), func(ctx context.Context) error { return f.Activity.MergeRequests.Delete(ctx, m.ID) })
	})
	if err != nil {
		return endpoint.None{}, answer(err)
	}
	_ = f.checker.Forget(context.WithoutCancel(ctx), m) // the merge request is deleted, whatever happens to its refs
	did(ctx, "delete", s.Scope, m)
	return endpoint.None{}, nil
}

// did records a write for the audit.
func did(ctx context.Context, verb string, in catalog.Scope, m mergerequest.MergeRequest) {
	audit.From(ctx).Did(verb, audit.MergeRequest, fmt.Sprintf("%s!%d", in.Path(), m.IID), m.ID)
}
