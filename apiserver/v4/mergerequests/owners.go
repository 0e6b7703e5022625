package mergerequests

import (
	"context"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// ownerApprovals returns a function that counts the approvals of a merge request by code owners. Approvals that the project refuses, approvals of
// the author, and approvals of users who are not Developers of the project any more do not count. The merge request must be locked, so that its
// approvals stay the same.
func (f *Family) ownerApprovals(in catalog.Scope, m mergerequest.MergeRequest) ref.OwnerApprovals {
	var c *consent
	return func(ctx context.Context, owners []string) (n int, err error) {
		if c == nil {
			now, err := f.consent(ctx, f.committers, m)
			if err != nil {
				return 0, err
			}
			c = &now
		}
		for _, a := range c.approvals {
			if a.User.UID == m.Author.UID {
				continue
			}
			is, err := f.isOwner(ctx, in, a.User, owners)
			if err != nil {
				return 0, err
			}
			if is {
				n++
			}
		}
		return n, nil
	}
}

// isOwner reports whether a user is a Developer of a project and among owners of its CODEOWNERS file.
func (f *Family) isOwner(ctx context.Context, in catalog.Scope, row database.User, owners []string) (bool, error) {
	u, err := item.Person(ctx, f.Catalog, row)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	access, err := f.Guard.Access(ctx, auth.Caller{User: u, Admin: u.Spec.Admin}, in)
	if err != nil || access.Role < role.Developer {
		return false, err
	}
	for _, owner := range owners {
		if is, err := f.isNamed(ctx, u, access.Role, owner); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// isNamed reports whether an owner of a CODEOWNERS file stands for a user with a role: "@username", "@group/subgroup" for its Developers, "@@role"
// for exactly this role, or an e-mail address.
func (f *Family) isNamed(ctx context.Context, u *v1alpha1.User, has role.Role, owner string) (bool, error) {
	if name, ok := strings.CutPrefix(owner, "@@"); ok {
		return strings.EqualFold(strings.TrimSuffix(name, "s"), has.String()), nil
	}
	name, ok := strings.CutPrefix(owner, "@")
	if !ok {
		return holds(u)(f.Catalog.UserByEmail(ctx, owner))
	}
	if is, err := holds(u)(f.Catalog.UserByUsername(ctx, name)); is || err != nil {
		return is, err
	}
	g, err := f.Catalog.GroupByPath(ctx, name)
	if err != nil {
		return false, catalog.IgnoreNotFound(err)
	}
	t, err := f.team(ctx, teams{}, database.Subject{Kind: database.KindGroup, ID: g.RESTID(), UID: g.UID})
	return slices.ContainsFunc(t.developers, func(m catalog.Member) bool { return m.User.UID == u.UID }), err
}

// holds returns a function that reports whether a user was found.
func holds(u *v1alpha1.User) func(*v1alpha1.User, error) (bool, error) {
	return func(found *v1alpha1.User, err error) (bool, error) {
		return err == nil && found.UID == u.UID, catalog.IgnoreNotFound(err)
	}
}
