package mergerequests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// The maximum numbers of the rules of a merge request, and of the users and groups of a rule.
const maxRules, maxRuleUsers, maxRuleGroups = 20, 100, 10

// ApprovalRule is an approval rule of a merge request, as clients of GitLab decode it.
type ApprovalRule struct {
	ID                   int64                 `json:"id"`
	Name                 string                `json:"name"`
	RuleType             string                `json:"rule_type" doc:"regular, or any_approver if every approval counts."`
	ReportType           *string               `json:"report_type" doc:"Always null."`
	EligibleApprovers    []*entity.UserSummary `json:"eligible_approvers" doc:"The users, and the Developers of the groups."`
	ApprovalsRequired    int64                 `json:"approvals_required"`
	SourceRule           *SourceRule           `json:"source_rule" doc:"The rule of the project that it is; null for a rule of the merge request itself."`
	Users                []*entity.UserSummary `json:"users"`
	Groups               []entity.GroupPlace   `json:"groups" doc:"Groups that the caller sees."`
	ContainsHiddenGroups bool                  `json:"contains_hidden_groups" doc:"Whether there are groups that the caller does not see."`
	Section              *string               `json:"section" doc:"Always null."`
	Approved             bool                  `json:"approved" doc:"Whether no approval is missing."`
	ApprovedBy           []*entity.UserSummary `json:"approved_by" doc:"Users whose approvals count."`
}

// SourceRule is the rule of the project that a rule of a merge request is.
type SourceRule struct {
	ID                int64  `json:"id"`
	Name              string `json:"name"`
	RuleType          string `json:"rule_type" doc:"regular, or any_approver if every approval counts."`
	ApprovalsRequired int64  `json:"approvals_required"`
}

// ApprovalState says how far each rule of a merge request is met.
type ApprovalState struct {
	ApprovalRulesOverwritten bool           `json:"approval_rules_overwritten" doc:"Whether the merge request has rules of its own."`
	Rules                    []ApprovalRule `json:"rules"`
}

func (f *Family) approvalState(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (ApprovalState, error) {
	c, err := f.freshConsent(ctx, s)
	if err != nil {
		return ApprovalState{}, err
	}
	shown, err := f.showRules(ctx, s.Subject, c.teams, c.rules...)
	return ApprovalState{slices.ContainsFunc(c.rules, func(r ruled) bool { return !r.ofProject }), shown}, err
}

type rulesRequest struct {
	endpoint.Paging
}

func (f *Family) rules(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *rulesRequest) (endpoint.List[ApprovalRule], error) {
	c, err := f.freshConsent(ctx, s)
	if err != nil {
		return endpoint.List[ApprovalRule]{}, err
	}
	shown, err := f.showRules(ctx, s.Subject, c.teams, endpoint.Rows(r.Paging, c.rules)...)
	return endpoint.Cut(shown, len(c.rules), func(r ApprovalRule) ApprovalRule { return r }), err
}

type ruleRequest struct {
	ID int64 `param:"approval_rule_id" doc:"Id of the rule."`
}

func (f *Family) rule(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *ruleRequest) (ApprovalRule, error) {
	c, err := f.freshConsent(ctx, s)
	if err != nil {
		return ApprovalRule{}, err
	}
	at := slices.IndexFunc(c.rules, func(one ruled) bool { return one.ID == r.ID })
	if at < 0 {
		return ApprovalRule{}, endpoint.NotFound("")
	}
	shown, err := f.showRules(ctx, s.Subject, c.teams, c.rules[at])
	if err != nil {
		return ApprovalRule{}, err
	}
	return shown[0], nil
}

type createRuleRequest struct {
	Name     string  `param:"name" required:"" blank:"refuse" example:"Security" doc:"Name of the rule, at most 255 characters."`
	Required int64   `param:"approvals_required" required:"" minimum:"0" maximum:"100" example:"1" doc:"Number of approvals."`
	UserIDs  []int64 `param:"user_ids" comma:"" doc:"Ids of the users whose approvals count. Every approval counts without users and groups."`
	GroupIDs []int64 `param:"group_ids" comma:"" doc:"Ids of the groups whose Developers' approvals count."`
}

func (f *Family) createRule(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *createRuleRequest) (ApprovalRule, error) {
	if err := changeable(s.Subject, 0); err != nil {
		return ApprovalRule{}, err
	}
	approvers, err := f.approvers(ctx, s.Subject, r.UserIDs, r.GroupIDs)
	if err != nil {
		return ApprovalRule{}, err
	}
	return f.saveRule(ctx, s, "create", func([]mergerequest.ApprovalRule) (mergerequest.ApprovalRule, error) {
		return mergerequest.ApprovalRule{Name: r.Name, Required: r.Required, Approvers: approvers}, nil
	})
}

type updateRuleRequest struct {
	ruleRequest
	Name     endpoint.Optional[string]  `param:"name" blank:"refuse" example:"Security" doc:"Name of the rule, at most 255 characters."`
	Required endpoint.Optional[int64]   `param:"approvals_required" minimum:"0" maximum:"100" doc:"Number of approvals."`
	UserIDs  endpoint.Optional[[]int64] `param:"user_ids" comma:"" doc:"Ids of the users whose approvals count."`
	GroupIDs endpoint.Optional[[]int64] `param:"group_ids" comma:"" doc:"Ids of the groups whose Developers' approvals count."`
}

func (f *Family) updateRule(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *updateRuleRequest) (ApprovalRule, error) {
	if err := changeable(s.Subject, r.ID); err != nil {
		return ApprovalRule{}, err
	}
	approvers, err := f.approvers(ctx, s.Subject, r.UserIDs.Value, r.GroupIDs.Value)
	if err != nil {
		return ApprovalRule{}, err
	}
	return f.saveRule(ctx, s, "update", func(rules []mergerequest.ApprovalRule) (mergerequest.ApprovalRule, error) {
		at := slices.IndexFunc(rules, func(one mergerequest.ApprovalRule) bool { return one.ID == r.ID })
		if at < 0 {
			return mergerequest.ApprovalRule{}, mergerequest.ErrRuleNotFound
		}
		changed := rules[at]
		changed.Name, changed.Required = r.Name.Or(changed.Name), r.Required.Or(changed.Required)
		changed.Approvers = slices.DeleteFunc(changed.Approvers, func(a database.Subject) bool {
			return a.Kind == mergerequest.KindUser && r.UserIDs.Set || a.Kind == database.KindGroup && r.GroupIDs.Set
		})
		changed.Approvers = append(changed.Approvers, approvers...)
		return changed, nil
	})
}

func (f *Family) deleteRule(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *ruleRequest) (endpoint.None, error) {
	if err := changeable(s.Subject, r.ID); err != nil {
		return endpoint.None{}, err
	}
	err := f.Activity.MergeRequests.DeleteApprovalRule(ctx, s.Record.ID, r.ID)
	if errors.Is(err, mergerequest.ErrRuleNotFound) {
		return endpoint.None{}, endpoint.NotFound("")
	}
	if err == nil {
		audit.From(ctx).Did("delete", audit.ApprovalRule, "of "+s.Record.Item().String(), r.ID)
	}
	return endpoint.None{}, err
}

// changeable returns an error if the rules of merge requests must not change, or if a rule is one of the project. id is 0 for a new rule.
func changeable(s auth.Subject, id int64) error {
	switch {
	case s.Scope.Project.Spec.MergeRequests.Approvals.RefuseOverrides:
		return endpoint.Forbidden("").Describe("The project does not let merge requests have rules of their own.")
	case id >= mergerequest.FirstProjectRule:
		return endpoint.Forbidden("").Describe("This is a rule of the project: Maintainers change it in /projects/:id/approval_rules.")
	}
	return nil
}

// approvers returns users and groups by their ids. It refuses users who do not see the project, and groups that the caller does not see.
func (f *Family) approvers(ctx context.Context, s auth.Subject, users, groups []int64) ([]database.Subject, error) {
	var a endpoint.Attributes
	if len(users) > maxRuleUsers {
		a.Refuse("user_ids", fmt.Sprintf("are too many (maximum is %d)", maxRuleUsers))
	}
	if len(groups) > maxRuleGroups {
		a.Refuse("group_ids", fmt.Sprintf("are too many (maximum is %d)", maxRuleGroups))
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	all := []database.Subject{}
	for _, id := range users {
		known, err := item.Assignable(ctx, &f.Kit, s.Scope, "user_ids", []int64{id})
		if err != nil {
			return nil, err
		}
		if len(known) == 0 {
			a.Refuse("user_ids", fmt.Sprintf("has %d, which is not the id of a user who sees the project", id))
		}
		for _, u := range known {
			all = append(all, database.Subject{Kind: mergerequest.KindUser, ID: u.ID, UID: u.UID})
		}
	}
	for _, id := range groups {
		in, err := f.Guard.Locate(ctx, s, auth.ReadGroup, id)
		if err != nil {
			return nil, err
		}
		all = append(all, item.Place(in))
	}
	slices.SortFunc(all, func(a, b database.Subject) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return slices.Compact(all), a.Err()
}

// saveRule writes the rule that change makes of the present rules of a merge request, and shows it.
func (f *Family) saveRule(
	ctx context.Context, s auth.ProjectRecord[item.MergeRequest], verb string,
	change func([]mergerequest.ApprovalRule) (mergerequest.ApprovalRule, error),
) (ApprovalRule, error) {
	var saved mergerequest.ApprovalRule
	m, store := s.Record, f.Activity.MergeRequests
	err := f.Activity.Database.Atomically(ctx, fmt.Sprintf("changing the approval rules of %s", m.Item()), func(ctx context.Context, db bun.IDB) error {
		if err := item.Lock(ctx, db, m); err != nil {
			return err
		}
		all, err := store.ApprovalRules(ctx, m.ID)
		if err != nil {
			return err
		}
		if saved, err = change(all[m.ID]); err != nil {
			return err
		}
		saved.MergeRequestID = m.ID
		if err := checkRule(saved, len(all[m.ID])); err != nil {
			return err
		}
		return store.SaveApprovalRule(ctx, &saved)
	})
	switch {
	case errors.Is(err, mergerequest.ErrRuleNotFound):
		return ApprovalRule{}, endpoint.NotFound("")
	case errors.Is(err, mergerequest.ErrRuleTaken):
		return ApprovalRule{}, endpoint.Invalid(map[string][]string{"name": {"has already been taken"}})
	case err != nil:
		return ApprovalRule{}, err
	}
	audit.From(ctx).Did(verb, audit.ApprovalRule, "of "+m.Item().String(), saved.ID)
	return f.rule(ctx, s, &ruleRequest{saved.ID})
}

// checkRule returns the problems of a rule that is written. others is the number of rules before.
func checkRule(r mergerequest.ApprovalRule, others int) error {
	var a endpoint.Attributes
	a.Text("name", r.Name, item.MaxTitle)
	if r.ID == 0 && others >= maxRules {
		a.Refuse("rules", fmt.Sprintf("are too many (maximum is %d)", maxRules))
	}
	return a.Err()
}

// showRules shows approval rules. Groups that the caller does not see, and their members, are left out.
func (f *Family) showRules(ctx context.Context, s auth.Subject, known teams, rules ...ruled) ([]ApprovalRule, error) {
	var named []database.User
	for _, r := range rules {
		named = append(named, approversOf(r.by)...)
		for _, a := range r.Approvers {
			if a.Kind == mergerequest.KindUser {
				named = append(named, database.User{ID: a.ID, UID: a.UID})
			}
		}
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, named...)
	if err != nil {
		return nil, err
	}
	all := make([]ApprovalRule, len(rules))
	for n, r := range rules {
		shown := ApprovalRule{
			ID: r.ID, Name: r.Name, RuleType: "regular", ApprovalsRequired: r.Required, Approved: r.left() == 0,
			EligibleApprovers: []*entity.UserSummary{}, Users: []*entity.UserSummary{}, Groups: []entity.GroupPlace{}, ApprovedBy: []*entity.UserSummary{},
		}
		if len(r.Approvers) == 0 {
			shown.RuleType = "any_approver"
		}
		if r.ofProject {
			shown.SourceRule = &SourceRule{shown.ID, shown.Name, shown.RuleType, shown.ApprovalsRequired}
		}
		for _, a := range r.by {
			if u := users[a.User.UID]; u != nil {
				shown.ApprovedBy = append(shown.ApprovedBy, u)
			}
		}
		for _, a := range r.Approvers {
			if u := users[a.UID]; a.Kind == mergerequest.KindUser && u != nil {
				shown.Users = append(shown.Users, u)
			}
		}
		shown.EligibleApprovers = append(shown.EligibleApprovers, shown.Users...)
		for _, a := range r.Approvers {
			if a.Kind == database.KindGroup {
				if err := f.showGroup(ctx, s, known, a, &shown); err != nil {
					return nil, err
				}
			}
		}
		all[n] = shown
	}
	return all, nil
}

// showGroup adds a group to a rule, with its Developers, if the caller sees it.
func (f *Family) showGroup(ctx context.Context, s auth.Subject, known teams, group database.Subject, to *ApprovalRule) error {
	t, err := f.team(ctx, known, group)
	if err != nil || len(t.in.Groups) == 0 {
		return err
	}
	if _, err := f.Guard.Visible(ctx, s.Caller, t.in); err != nil {
		to.ContainsHiddenGroups = true
		return catalog.IgnoreNotFound(err)
	}
	to.Groups = append(to.Groups, entity.ShowGroupPlace(t.in.Groups, f.WebURL))
	shown := map[int64]bool{}
	for _, u := range to.EligibleApprovers {
		shown[u.ID] = true
	}
	for _, m := range t.developers {
		if !shown[m.RESTID()] {
			u := entity.SummarizeUser(m.User, f.WebURL)
			to.EligibleApprovers = append(to.EligibleApprovers, &u)
		}
	}
	return nil
}
