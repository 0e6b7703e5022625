package mergerequests

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// ProjectRule is an approval rule of a project, as clients of GitLab decode it.
type ProjectRule struct {
	ID                   int64                 `json:"id"`
	Name                 string                `json:"name"`
	RuleType             string                `json:"rule_type" doc:"regular, or any_approver if every approval counts."`
	ReportType           *string               `json:"report_type" doc:"Always null."`
	EligibleApprovers    []*entity.UserSummary `json:"eligible_approvers" doc:"The users, and the Developers of the groups."`
	ApprovalsRequired    int64                 `json:"approvals_required"`
	Users                []*entity.UserSummary `json:"users"`
	Groups               []entity.GroupPlace   `json:"groups" doc:"Groups that the caller sees."`
	ContainsHiddenGroups bool                  `json:"contains_hidden_groups" doc:"Whether there are groups that the caller does not see."`
	ProtectedBranches    []struct{}            `json:"protected_branches" doc:"Always empty: a rule applies to all branches."`
	AllProtectedBranches bool                  `json:"applies_to_all_protected_branches" doc:"Always false: a rule applies to all branches."`
}

// showProjectRules shows rules of a project.
func (f *Family) showProjectRules(ctx context.Context, s auth.Subject, rules ...mergerequest.ApprovalRule) ([]ProjectRule, error) {
	some := make([]ruled, len(rules))
	for n, r := range rules {
		some[n].ApprovalRule = r
	}
	shown, err := f.showRules(ctx, s, teams{}, some...)
	all := make([]ProjectRule, len(shown))
	for n, r := range shown {
		all[n] = ProjectRule{
			ID: r.ID, Name: r.Name, RuleType: r.RuleType, EligibleApprovers: r.EligibleApprovers, ApprovalsRequired: r.ApprovalsRequired, Users: r.Users,
			Groups: r.Groups, ContainsHiddenGroups: r.ContainsHiddenGroups, ProtectedBranches: []struct{}{},
		}
	}
	return all, err
}

func (f *Family) projectRules(ctx context.Context, s auth.Project, r *rulesRequest) (endpoint.List[ProjectRule], error) {
	d, err := f.demandsOf(ctx, s.Scope.Project)
	if err != nil {
		return endpoint.List[ProjectRule]{}, err
	}
	shown, err := f.showProjectRules(ctx, s.Subject, endpoint.Rows(r.Paging, d.rules)...)
	return endpoint.Cut(shown, len(d.rules), func(r ProjectRule) ProjectRule { return r }), err
}

func (f *Family) projectRule(ctx context.Context, s auth.Project, r *ruleRequest) (ProjectRule, error) {
	return f.showProjectRule(ctx, s, s.Scope.Project, func(one mergerequest.ApprovalRule) bool { return one.ID == r.ID })
}

// showProjectRule shows the rule of a project that is wanted.
func (f *Family) showProjectRule(ctx context.Context, s auth.Project, p *v1alpha1.Project, wanted func(mergerequest.ApprovalRule) bool) (ProjectRule, error) {
	d, err := f.demandsOf(ctx, p)
	if err != nil {
		return ProjectRule{}, err
	}
	at := slices.IndexFunc(d.rules, wanted)
	if at < 0 {
		return ProjectRule{}, endpoint.NotFound("")
	}
	shown, err := f.showProjectRules(ctx, s.Subject, d.rules[at])
	if err != nil {
		return ProjectRule{}, err
	}
	return shown[0], nil
}

func (f *Family) createProjectRule(ctx context.Context, s auth.Project, r *createRuleRequest) (ProjectRule, error) {
	approvers, err := f.approvers(ctx, s.Subject, r.UserIDs, r.GroupIDs)
	if err != nil {
		return ProjectRule{}, err
	}
	made := v1alpha1.ApprovalRule{Name: r.Name, Required: int32(r.Required)} //nolint:gosec // at most 100
	made.UserRefs, made.GroupRefs = references(approvers, mergerequest.KindUser), references(approvers, database.KindGroup)
	p, err := f.changeApprovals(ctx, s, func(a *v1alpha1.Approvals) error {
		if len(a.Rules) >= maxRules {
			return endpoint.Invalid(map[string][]string{"rules": {fmt.Sprintf("are too many (maximum is %d)", maxRules)}})
		}
		ids := mergerequest.ProjectRuleIDs(s.Scope.Project.UID, append(slices.Clone(a.Rules), made))
		one := made
		if id := ids[len(a.Rules)]; id != mergerequest.ProjectRuleIDs(s.Scope.Project.UID, []v1alpha1.ApprovalRule{made})[0] {
			one.ID = id // without the rule that has the id of its name, it would get that id
		}
		a.Rules = append(a.Rules, one)
		return checkNames(a.Rules, one.Name)
	})
	if err != nil {
		return ProjectRule{}, err
	}
	return f.showProjectRule(ctx, s, p, func(one mergerequest.ApprovalRule) bool { return one.Name == r.Name })
}

func (f *Family) updateProjectRule(ctx context.Context, s auth.Project, r *updateRuleRequest) (ProjectRule, error) {
	approvers, err := f.approvers(ctx, s.Subject, r.UserIDs.Value, r.GroupIDs.Value)
	if err != nil {
		return ProjectRule{}, err
	}
	p, err := f.changeApprovals(ctx, s, func(a *v1alpha1.Approvals) error {
		at := withID(s.Scope.Project.UID, a.Rules, r.ID)
		if at < 0 {
			return endpoint.NotFound("")
		}
		one := &a.Rules[at]
		if name := r.Name.Or(one.Name); name != one.Name {
			one.Name, one.ID = name, r.ID // the id would follow from the new name
		}
		one.Required = int32(r.Required.Or(int64(one.Required))) //nolint:gosec // at most 100
		if r.UserIDs.Set {
			one.UserRefs = references(approvers, mergerequest.KindUser)
		}
		if r.GroupIDs.Set {
			one.GroupRefs = references(approvers, database.KindGroup)
		}
		return checkNames(a.Rules, one.Name)
	})
	if err != nil {
		return ProjectRule{}, err
	}
	return f.showProjectRule(ctx, s, p, func(one mergerequest.ApprovalRule) bool { return one.ID == r.ID })
}

func (f *Family) deleteProjectRule(ctx context.Context, s auth.Project, r *ruleRequest) (endpoint.None, error) {
	_, err := f.changeApprovals(ctx, s, func(a *v1alpha1.Approvals) error {
		at := withID(s.Scope.Project.UID, a.Rules, r.ID)
		if at < 0 {
			return endpoint.NotFound("")
		}
		a.Rules = slices.Delete(a.Rules, at, at+1)
		return nil
	})
	return endpoint.None{}, err
}

// withID returns the index of the rule of a project that has an id, or -1.
func withID(project types.UID, rules []v1alpha1.ApprovalRule, id int64) int {
	return slices.Index(mergerequest.ProjectRuleIDs(project, rules), id)
}

// checkNames returns an error if a name is too long, or if several rules have it.
func checkNames(rules []v1alpha1.ApprovalRule, name string) error {
	var a endpoint.Attributes
	a.Text("name", name, item.MaxTitle)
	n := 0
	for _, r := range rules {
		if r.Name == name {
			n++
		}
	}
	if n > 1 {
		a.Refuse("name", "has already been taken")
	}
	return a.Err()
}

// references returns references to the approvers of a kind.
func references(approvers []database.Subject, kind string) (all []v1alpha1.Reference) {
	for _, a := range approvers {
		if a.Kind == kind {
			all = append(all, v1alpha1.Reference{ID: a.ID, UID: string(a.UID)})
		}
	}
	return all
}
