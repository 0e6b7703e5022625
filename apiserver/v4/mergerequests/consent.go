package mergerequests

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// consent says how far a merge request is approved.
type consent struct {
	approvals []mergerequest.Approval
	rules     []ruled
	// anybody is the number of approvals that the merge request needs apart from the rules.
	anybody int64
	// demands are the requirements of the project, and committers finds the committers if they matter.
	demands    demands
	committers findCommitters
	// teams are the groups that were looked up for the rules.
	teams teams
}

// ruled is an approval rule with the approvals that count for it.
type ruled struct {
	mergerequest.ApprovalRule
	by []mergerequest.Approval
	// ofProject says that it is a rule of the project.
	ofProject bool
}

func (r ruled) left() int64 { return max(r.Required-int64(len(r.by)), 0) }

// required is the number of required approvals.
func (c consent) required() int64 {
	n := c.anybody
	for _, r := range c.rules {
		n += r.Required
	}
	return n
}

// left is the number of missing approvals. An approval counts for each rule that it fits.
func (c consent) left() int64 {
	n := max(c.anybody-int64(len(c.approvals)), 0)
	for _, r := range c.rules {
		n += r.left()
	}
	return n
}

// by reports whether a user has approved.
func (c consent) by(user types.UID) bool {
	return slices.ContainsFunc(c.approvals, func(a mergerequest.Approval) bool { return a.User.UID == user })
}

// consents returns how far merge requests are approved, by their ids.
func (f *Family) consents(ctx context.Context, find findCommitters, some ...mergerequest.MergeRequest) (map[int64]consent, error) {
	ids := make([]int64, len(some))
	for n, m := range some {
		ids[n] = m.ID
	}
	approvals, err := f.Activity.MergeRequests.ApprovalsOf(ctx, ids...)
	if err != nil {
		return nil, err
	}
	rules, err := f.Activity.MergeRequests.ApprovalRules(ctx, ids...)
	if err != nil {
		return nil, err
	}
	all, known, asked := map[int64]consent{}, teams{}, map[types.UID]demands{}
	for _, m := range some {
		d, found := asked[m.In.UID]
		if !found {
			if d, err = f.demands(ctx, m.In); err != nil {
				return nil, err
			}
			asked[m.In.UID] = d
		}
		c := consent{anybody: max(m.ApprovalsRequired, int64(d.Required)), demands: d, committers: find, teams: known}
		if c.approvals, err = f.counting(ctx, find, d, m, approvals[m.ID]); err != nil {
			return nil, err
		}
		if c.rules, err = f.ruled(ctx, c, rules[m.ID]); err != nil {
			return nil, err
		}
		all[m.ID] = c
	}
	return all, nil
}

// ruled returns the rules of the project and those of a merge request itself, with the approvals that count for each.
func (f *Family) ruled(ctx context.Context, c consent, own []mergerequest.ApprovalRule) (all []ruled, err error) {
	for n, r := range slices.Concat(c.demands.rules, own) {
		one := ruled{ApprovalRule: r, ofProject: n < len(c.demands.rules)}
		for _, a := range c.approvals {
			counts, err := f.eligible(ctx, c.teams, r, a.User)
			if err != nil {
				return nil, err
			}
			if counts {
				one.by = append(one.by, a)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// consent returns how far a merge request is approved.
func (f *Family) consent(ctx context.Context, find findCommitters, m mergerequest.MergeRequest) (consent, error) {
	all, err := f.consents(ctx, find, m)
	return all[m.ID], err
}

// freshConsent returns how far the merge request of a request is approved, after it was brought up to date: a push removes approvals.
func (f *Family) freshConsent(ctx context.Context, s auth.ProjectRecord[item.MergeRequest]) (consent, error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return consent{}, err
	}
	return f.consent(ctx, f.committers, m)
}

// eligible reports whether the approval of a user counts for a rule: that of an approver, and of a Developer of a group that is one.
func (f *Family) eligible(ctx context.Context, known teams, r mergerequest.ApprovalRule, u database.User) (bool, error) {
	if len(r.Approvers) == 0 {
		return true, nil
	}
	for _, a := range r.Approvers {
		if a.Kind == mergerequest.KindUser {
			if a.UID == u.UID {
				return true, nil
			}
			continue
		}
		t, err := f.team(ctx, known, a)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(t.developers, func(m catalog.Member) bool { return m.User.UID == u.UID }) {
			return true, nil
		}
	}
	return false, nil
}

// team is a group with its members that have at least the role Developer. It is empty if the group is gone.
type team struct {
	in         catalog.Scope
	developers []catalog.Member
}

// teams are the groups that a request has looked up, by their UIDs. It looks up each once.
type teams map[types.UID]team

func (f *Family) team(ctx context.Context, known teams, group database.Subject) (team, error) {
	if t, found := known[group.UID]; found {
		return t, nil
	}
	g, err := catalog.ByIDAndUID[*v1alpha1.Group](ctx, f.Catalog, group.ID, group.UID)
	if err != nil {
		known[group.UID] = team{}
		return team{}, catalog.IgnoreNotFound(err)
	}
	above, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return team{}, err
	}
	t := team{in: catalog.Scope{Groups: above}}
	members, err := f.Catalog.AllMembersOf(ctx, t.in, f.Clock.Now())
	if err != nil {
		return team{}, err
	}
	for _, m := range members {
		if m.Role() >= role.Developer {
			t.developers = append(t.developers, m)
		}
	}
	known[group.UID] = t
	return t, nil
}

// canApprove reports whether the caller is allowed to approve a merge request: Developers and the approvers of its rules, but not
// its author or committers if the project refuses their approvals.
func (f *Family) canApprove(ctx context.Context, s auth.Subject, m mergerequest.MergeRequest, c consent) (bool, error) {
	u := s.Caller.User
	if u == nil || m.State != mergerequest.Opened || c.by(u.UID) {
		return false, nil
	}
	if barred, err := f.barred(ctx, c.committers, c.demands, m, item.User(u)); barred || err != nil {
		return false, err
	}
	if s.Access.Role >= role.Developer {
		return true, nil
	}
	for _, r := range c.rules {
		if len(r.Approvers) == 0 {
			continue
		}
		if counts, err := f.eligible(ctx, c.teams, r.ApprovalRule, item.User(u)); counts || err != nil {
			return counts, err
		}
	}
	return false, nil
}
