package mergerequests

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
)

// settingTable lists the endpoints of the settings of approvals of a project, and of its rules.
func (f *Family) settingTable() endpoint.Table {
	const settings, rules = "/projects/{id}/approvals", "/projects/{id}/approval_rules"
	reads := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.NoteMergeRequests).Anonymous(endpoint.Challenged)
	}
	return endpoint.Table{
		reads(endpoint.Get(settings, f.approvalSettings)).Doc("Get the settings of the approvals of a project."),
		endpoint.Post(settings, f.configureApprovals).Needs(auth.AdminProject).Nonempty().Doc("Update the settings of the approvals of a project."),
		reads(endpoint.Get(rules, f.projectRules)).Doc("List the approval rules of a project."),
		reads(endpoint.Get(rules+"/{approval_rule_id}", f.projectRule)).Doc("Get an approval rule of a project."),
		endpoint.Post(rules, f.createProjectRule).Needs(auth.AdminProject).Asks(auth.ReadGroup).
			Doc("Create an approval rule of a project, which applies to all its merge requests."),
		endpoint.Put(rules+"/{approval_rule_id}", f.updateProjectRule).Needs(auth.AdminProject).Asks(auth.ReadGroup).
			Doc("Update an approval rule of a project."),
		endpoint.Delete(rules+"/{approval_rule_id}", f.deleteProjectRule).Needs(auth.AdminProject).Doc("Delete an approval rule of a project."),
	}
}

// ApprovalSettings are the settings of the approvals of a project, as clients of GitLab decode them.
type ApprovalSettings struct {
	Approvers                  []struct{} `json:"approvers" doc:"Always empty: rules name the approvers."`
	ApproverGroups             []struct{} `json:"approver_groups" doc:"Always empty: rules name the groups."`
	ApprovalsBeforeMerge       int64      `json:"approvals_before_merge" doc:"Number of approvals that a merge request needs by any users."`
	ResetApprovalsOnPush       bool       `json:"reset_approvals_on_push" doc:"Whether a push to the source branch removes the approvals."`
	SelectiveCodeOwnerRemovals bool       `json:"selective_code_owner_removals" doc:"Always false."`
	DisableOverriding          bool       `json:"disable_overriding_approvers_per_merge_request" doc:"Whether merge requests must not have rules of their own."`
	AuthorApproval             bool       `json:"merge_requests_author_approval" doc:"Whether authors can approve their own merge requests."`
	DisableCommittersApproval  bool       `json:"merge_requests_disable_committers_approval" doc:"Whether approvals by the authors and committers of the commits do not count."`
	RequirePasswordToApprove   bool       `json:"require_password_to_approve" doc:"Always false."`
	RequireReauthentication    bool       `json:"require_reauthentication_to_approve" doc:"Always false."`
}

func showSettings(p *v1alpha1.Project) ApprovalSettings {
	a := p.Spec.MergeRequests.Approvals
	return ApprovalSettings{
		Approvers: []struct{}{}, ApproverGroups: []struct{}{}, ApprovalsBeforeMerge: int64(a.Required), ResetApprovalsOnPush: !a.KeepOnPush,
		DisableOverriding: a.RefuseOverrides, AuthorApproval: a.AllowAuthor, DisableCommittersApproval: a.RefuseCommitters,
	}
}

func (f *Family) approvalSettings(_ context.Context, s auth.Project, _ *endpoint.None) (ApprovalSettings, error) {
	return showSettings(s.Scope.Project), nil
}

type settingsRequest struct {
	ApprovalsBeforeMerge       endpoint.Optional[int64] `param:"approvals_before_merge" minimum:"0" maximum:"100" example:"1" doc:"Number of approvals that a merge request needs by any users."`
	ResetApprovalsOnPush       endpoint.Optional[bool]  `param:"reset_approvals_on_push" doc:"Whether a push to the source branch removes the approvals."`
	SelectiveCodeOwnerRemovals bool                     `param:"selective_code_owner_removals" default:"false" doc:"Must be false."`
	DisableOverriding          endpoint.Optional[bool]  `param:"disable_overriding_approvers_per_merge_request" doc:"Whether merge requests must not have rules of their own."`
	AuthorApproval             endpoint.Optional[bool]  `param:"merge_requests_author_approval" doc:"Whether authors can approve their own merge requests."`
	DisableCommittersApproval  endpoint.Optional[bool]  `param:"merge_requests_disable_committers_approval" doc:"Whether approvals by the authors and committers of the commits do not count."`
	RequirePasswordToApprove   bool                     `param:"require_password_to_approve" default:"false" doc:"Must be false."`
	RequireReauthentication    bool                     `param:"require_reauthentication_to_approve" default:"false" doc:"Must be false."`
}

func (f *Family) configureApprovals(ctx context.Context, s auth.Project, r *settingsRequest) (ApprovalSettings, error) {
	var wrong endpoint.Attributes
	for name, on := range map[string]bool{
		"selective_code_owner_removals": r.SelectiveCodeOwnerRemovals, "require_password_to_approve": r.RequirePasswordToApprove,
		"require_reauthentication_to_approve": r.RequireReauthentication,
	} {
		if on {
			wrong.Refuse(name, "is not supported")
		}
	}
	if err := wrong.Err(); err != nil {
		return ApprovalSettings{}, err
	}
	p, err := f.changeApprovals(ctx, s, func(a *v1alpha1.Approvals) error {
		a.Required = int32(r.ApprovalsBeforeMerge.Or(int64(a.Required))) //nolint:gosec // at most 100
		a.KeepOnPush = !r.ResetApprovalsOnPush.Or(!a.KeepOnPush)
		a.RefuseOverrides = r.DisableOverriding.Or(a.RefuseOverrides)
		a.AllowAuthor = r.AuthorApproval.Or(a.AllowAuthor)
		a.RefuseCommitters = r.DisableCommittersApproval.Or(a.RefuseCommitters)
		return nil
	})
	if err != nil {
		return ApprovalSettings{}, err
	}
	return showSettings(p), nil
}

// changeApprovals changes the settings of approvals of the project of a request, and returns the project.
func (f *Family) changeApprovals(ctx context.Context, s auth.Project, change func(*v1alpha1.Approvals) error) (*v1alpha1.Project, error) {
	return f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) error { return change(&p.Spec.MergeRequests.Approvals) })
}
