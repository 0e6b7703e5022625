package mergerequests

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// approvalTable lists the endpoints of approvals.
func (f *Family) approvalTable() endpoint.Table {
	const rules = one + "/approval_rules"
	reads := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served)
	}
	approves := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.NoteMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Challenged)
	}
	manages := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.UpdateMergeRequests).Found(f.items.MergeRequest)
	}
	return endpoint.Table{
		reads(endpoint.Get(one+"/approvals", f.approvals)).Doc("Get the approvals of a merge request."),
		approves(endpoint.Post(one+"/approve", f.approve)).Doc("Approve a merge request."),
		approves(endpoint.Post(one+"/unapprove", f.unapprove)).Doc("Delete the caller's approval of a merge request."),
		endpoint.Put(one+"/reset_approvals", f.resetApprovals).Needs(auth.UpdateMergeRequests).Denies(endpoint.Unauthorized("")).
			Found(f.items.MergeRequest).Status(http.StatusAccepted).
			Doc("Delete all approvals of a merge request. Only the bots of project and group access tokens can."),
		reads(endpoint.Get(one+"/approval_state", f.approvalState)).Doc("Get the state of the approval rules of a merge request."),
		reads(endpoint.Get(rules, f.rules)).Doc("List the approval rules of a merge request."),
		reads(endpoint.Get(rules+"/{approval_rule_id}", f.rule)).Doc("Get an approval rule of a merge request."),
		manages(endpoint.Post(rules, f.createRule)).Asks(auth.ReadGroup).Doc("Create an approval rule of a merge request."),
		manages(endpoint.Put(rules+"/{approval_rule_id}", f.updateRule)).Asks(auth.ReadGroup).Doc("Update an approval rule of a merge request."),
		manages(endpoint.Delete(rules+"/{approval_rule_id}", f.deleteRule)).Doc("Delete an approval rule of a merge request."),
	}
}

func (f *Family) approvals(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (Approvals, error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return Approvals{}, err
	}
	return f.showApprovals(ctx, s.Subject, m)
}

type approveRequest struct {
	SHA string `param:"sha" doc:"Head of the source branch that the caller has reviewed. 409 if the branch has another head."`
}

func (f *Family) approve(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *approveRequest) (Approvals, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Approvals{}, err
	}
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return Approvals{}, err
	}
	before, err := f.committersBefore(ctx, m)
	if err != nil {
		return Approvals{}, err
	}
	m, err = f.decide(ctx, m, "approved", u, func(ctx context.Context, m mergerequest.MergeRequest) error {
		c, err := f.consent(ctx, before, m)
		if err != nil {
			return err
		}
		can, err := f.canApprove(ctx, s.Subject, m, c)
		switch {
		case err != nil:
			return err
		case !can:
			return endpoint.Unauthorized("").Describe("Developers and the approvers of its rules can approve an open merge request once. " +
				"The project can refuse the approvals of its author and of the authors and committers of its commits, and of everybody while the commits cannot be read.")
		case r.SHA != "" && r.SHA != m.Head:
			return endpoint.Conflict("SHA does not match HEAD of source branch: " + m.Head)
		}
		_, err = f.Activity.MergeRequests.Approve(ctx, m.ID, item.User(u))
		return err
	})
	if err != nil {
		return Approvals{}, err
	}
	did(ctx, "approve", s.Scope, m)
	return f.showApprovals(ctx, s.Subject, m)
}

func (f *Family) unapprove(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (Approvals, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Approvals{}, err
	}
	m, err := f.decide(ctx, s.Record.MergeRequest, "unapproved", u, func(ctx context.Context, m mergerequest.MergeRequest) error {
		if m.State != mergerequest.Opened {
			return endpoint.Unauthorized("").Describe("Only the approvals of an open merge request can be taken back.")
		}
		removed, err := f.Activity.MergeRequests.Unapprove(ctx, m.ID, item.User(u))
		if err == nil && !removed {
			err = endpoint.NotFound("")
		}
		return err
	})
	if err != nil {
		return Approvals{}, err
	}
	did(ctx, "unapprove", s.Scope, m)
	return f.showApprovals(ctx, s.Subject, m)
}

func (f *Family) resetApprovals(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (Approvals, error) {
	if s.Caller.Bot == nil {
		return Approvals{}, endpoint.Unauthorized("").Describe("Only the bots of project and group access tokens can reset approvals.")
	}
	m, err := f.decide(ctx, s.Record.MergeRequest, "reset the approvals of", s.Caller.User, func(ctx context.Context, m mergerequest.MergeRequest) error {
		if m.State != mergerequest.Opened {
			return endpoint.Unauthorized("").Describe("Only the approvals of an open merge request can be reset.")
		}
		return f.Activity.MergeRequests.ResetApprovals(ctx, m.ID)
	})
	if err != nil {
		return Approvals{}, err
	}
	did(ctx, "reset approvals", s.Scope, m)
	return f.showApprovals(ctx, s.Subject, m)
}

// decide locks a merge request, makes a decision of a user on it as it is then, and records the decision in a system note. It returns the merge
// request.
func (f *Family) decide(
	ctx context.Context, m mergerequest.MergeRequest, did string, by *v1alpha1.User, decision func(context.Context, mergerequest.MergeRequest) error,
) (mergerequest.MergeRequest, error) {
	now := f.Clock.Now().UTC()
	err := f.Activity.Database.Atomically(ctx, fmt.Sprintf("deciding on %s", m.Item()), func(ctx context.Context, _ bun.IDB) (err error) {
		if err := f.Activity.MergeRequests.Touch(ctx, m.ID, now); err != nil { // pushes wait from here on
			return err
		}
		if m, err = f.Activity.MergeRequests.WithID(ctx, m.ID); err != nil {
			return err
		}
		if err := decision(ctx, m); err != nil {
			return err
		}
		return f.Activity.Notes.Create(ctx, &note.Note{
			In: m.In, On: m.Item(), Individual: true, System: true, Body: did + " this merge request", Author: item.User(by), Created: now,
		})
	})
	return m, answer(err)
}

// Approvals are the approvals of a merge request, as clients of GitLab decode them.
type Approvals struct {
	ID                             int64                    `json:"id"`
	IID                            int64                    `json:"iid"`
	ProjectID                      int64                    `json:"project_id"`
	Title                          string                   `json:"title"`
	Description                    string                   `json:"description"`
	State                          mergerequest.State       `json:"state" doc:"opened, closed, locked or merged."`
	CreatedAt                      endpoint.Time            `json:"created_at"`
	UpdatedAt                      endpoint.Time            `json:"updated_at"`
	MergeStatus                    mergerequest.MergeStatus `json:"merge_status"`
	Approved                       bool                     `json:"approved" doc:"Whether no approval is missing."`
	ApprovalsRequired              int64                    `json:"approvals_required" doc:"Sum over the rules."`
	ApprovalsLeft                  int64                    `json:"approvals_left" doc:"Number of missing approvals."`
	RequirePasswordToApprove       bool                     `json:"require_password_to_approve" doc:"Always false."`
	ApprovedBy                     []Approver               `json:"approved_by" doc:"The approvals, the oldest first."`
	SuggestedApprovers             []*entity.UserSummary    `json:"suggested_approvers" doc:"Users named by rules that lack approvals, who have not approved."`
	Approvers                      []Approver               `json:"approvers" doc:"Always empty: rules name the approvers."`
	ApproverGroups                 []struct{}               `json:"approver_groups" doc:"Always empty: rules name the groups."`
	UserHasApproved                bool                     `json:"user_has_approved"`
	UserCanApprove                 bool                     `json:"user_can_approve"`
	ApprovalRulesLeft              []ApprovalRule           `json:"approval_rules_left" doc:"Rules that lack approvals."`
	HasApprovalRules               bool                     `json:"has_approval_rules"`
	MergeRequestApproversAvailable bool                     `json:"merge_request_approvers_available" doc:"Always true."`
	MultipleApprovalRulesAvailable bool                     `json:"multiple_approval_rules_available" doc:"Always true."`
}

// Approver is a user who has approved a merge request.
type Approver struct {
	User       *entity.UserSummary `json:"user"`
	ApprovedAt endpoint.Time       `json:"approved_at"`
}

// showApprovals shows the approvals of a merge request of the project of a request.
func (f *Family) showApprovals(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest) (Approvals, error) {
	c, err := f.consent(ctx, f.committers, m)
	if err != nil {
		return Approvals{}, err
	}
	can, err := f.canApprove(ctx, s, m, c)
	if err != nil {
		return Approvals{}, err
	}
	unmet := slices.DeleteFunc(slices.Clone(c.rules), func(r ruled) bool { return r.left() == 0 })
	rules, err := f.showRules(ctx, s, c.teams, unmet...)
	if err != nil {
		return Approvals{}, err
	}
	shown := Approvals{
		ID: m.ID, IID: m.IID, ProjectID: m.In.ID, Title: m.Title, Description: m.Description, State: m.State,
		CreatedAt: endpoint.Time(m.Created), UpdatedAt: endpoint.Time(m.Updated), MergeStatus: m.MergeStatus,
		Approved: c.left() == 0, ApprovalsRequired: c.required(), ApprovalsLeft: c.left(),
		ApprovedBy: []Approver{}, SuggestedApprovers: []*entity.UserSummary{}, Approvers: []Approver{}, ApproverGroups: []struct{}{},
		UserHasApproved: c.by(item.Viewer(s)), UserCanApprove: can, ApprovalRulesLeft: rules, HasApprovalRules: len(c.rules) > 0,
		MergeRequestApproversAvailable: true, MultipleApprovalRulesAvailable: true,
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, approversOf(c.approvals)...)
	if err != nil {
		return Approvals{}, err
	}
	approved := map[int64]bool{}
	for _, a := range c.approvals {
		approved[a.User.ID] = true
		if u := users[a.User.UID]; u != nil {
			shown.ApprovedBy = append(shown.ApprovedBy, Approver{u, endpoint.Time(a.At)})
		}
	}
	for _, r := range rules {
		for _, u := range r.Users {
			if !approved[u.ID] {
				approved[u.ID] = true // named once
				shown.SuggestedApprovers = append(shown.SuggestedApprovers, u)
			}
		}
	}
	return shown, nil
}

func approversOf(approvals []mergerequest.Approval) []database.User {
	all := make([]database.User, len(approvals))
	for n, a := range approvals {
		all[n] = a.User
	}
	return all
}
