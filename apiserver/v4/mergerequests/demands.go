package mergerequests

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
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
	p, err := catalog.ByIDAndUID[*v1alpha1.Project](ctx, f.Catalog, project.ID, project.UID)
	if err != nil {
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
