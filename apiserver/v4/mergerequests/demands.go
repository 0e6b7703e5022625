package mergerequests

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// demands are the requirements of a project for the approvals of its merge requests.
type demands struct {
	v1alpha1.Approvals
	project *v1alpha1.Project
	// rules are the rules of the project. Users and groups that are gone have no UID in them, so that no approval counts for them.
	rules []mergerequest.ApprovalRule
}

// demands returns the requirements of a project. A project that is gone has none.
func (f *Family) demands(ctx context.Context, project database.Subject) (demands, error) {
	p, err := catalog.ByID[*v1alpha1.Project](ctx, f.Catalog, project.ID)
	if err != nil || p.UID != project.UID {
		return demands{}, catalog.IgnoreNotFound(err)
	}
	return f.demandsOf(ctx, p)
}

func (f *Family) demandsOf(ctx context.Context, p *v1alpha1.Project) (demands, error) {
	d := demands{Approvals: p.Spec.MergeRequests.Approvals, project: p}
	ids := mergerequest.ProjectRuleIDs(p.UID, d.Rules)
	for n, declared := range d.Rules {
		r := mergerequest.ApprovalRule{ID: ids[n], Name: declared.Name, Required: int64(declared.Required)}
		for _, to := range declared.UserRefs {
			a := database.Subject{Kind: mergerequest.KindUser}
			u, err := f.Catalog.User(ctx, to)
			if err == nil {
				a.ID, a.UID = u.RESTID(), u.UID
			} else if !errors.Is(err, catalog.ErrNotFound) {
				return demands{}, err
			}
			r.Approvers = append(r.Approvers, a)
		}
		for _, to := range declared.GroupRefs {
			a := database.Subject{Kind: database.KindGroup}
			g, err := f.Catalog.AnyGroup(ctx, p.Namespace, to)
			if err == nil {
				a.ID, a.UID = g.RESTID(), g.UID
			} else if !errors.Is(err, catalog.ErrNotFound) {
				return demands{}, err
			}
			r.Approvers = append(r.Approvers, a)
		}
		d.rules = append(d.rules, r)
	}
	return d, nil
}

// counting returns the approvals of a merge request that the project does not refuse.
func (f *Family) counting(ctx context.Context, m mergerequest.MergeRequest, d demands, all []mergerequest.Approval) ([]mergerequest.Approval, error) {
	var counting []mergerequest.Approval
	for _, a := range all {
		barred, err := f.barred(ctx, m, d, a.User)
		if err != nil {
			return nil, err
		}
		if !barred {
			counting = append(counting, a)
		}
	}
	return counting, nil
}

// countingNow is counting for the approvals that a merge request has.
func (f *Family) countingNow(ctx context.Context, m mergerequest.MergeRequest) ([]mergerequest.Approval, error) {
	d, err := f.demands(ctx, m.In)
	if err != nil {
		return nil, err
	}
	all, err := f.Activity.MergeRequests.Approvals(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	return f.counting(ctx, m, d, all)
}

// barred reports whether the project refuses approvals of a merge request by a user. It refuses those of everybody while it cannot read the commits.
func (f *Family) barred(ctx context.Context, m mergerequest.MergeRequest, d demands, u database.User) (bool, error) {
	if u.UID == m.Author.UID && !d.AllowAuthor {
		return true, nil
	}
	if !d.RefuseCommitters || m.Head == "" || m.State == mergerequest.Merged {
		return false, nil
	}
	person, err := f.Catalog.User(ctx, v1alpha1.Reference{ID: u.ID})
	if err != nil || person.UID != u.UID || person.Spec.Email == "" {
		return false, catalog.IgnoreNotFound(err)
	}
	repo, err := f.Repositories.Content(ctx, d.project)
	if err != nil {
		return true, ctx.Err()
	}
	for c, err := range history.Walk(ctx, repo, history.Log{Tips: []string{m.Head}, Without: slices.DeleteFunc([]string{m.Base}, empty), Limit: maxCommits}) {
		if err != nil {
			return true, ctx.Err()
		}
		if strings.EqualFold(c.Author.Email, person.Spec.Email) || strings.EqualFold(c.Committer.Email, person.Spec.Email) {
			return true, nil
		}
	}
	return false, nil
}

// maxCommits is the maximum number of commits in which the authors and committers of a merge request are looked for.
const maxCommits = 10_000

func empty(id string) bool { return id == "" }
