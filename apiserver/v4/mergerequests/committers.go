package mergerequests

import (
	"context"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// committers are the authors and committers of the commits of a merge request.
type committers struct {
	emails []string
	// unreadable says that the commits cannot be read. Every user counts as a committer then.
	unreadable bool
}

// include reports whether a user with an email address is one of them.
func (c committers) include(email string) bool {
	return c.unreadable || slices.ContainsFunc(c.emails, func(one string) bool { return strings.EqualFold(one, email) })
}

// findCommitters returns the committers of a merge request of a project.
type findCommitters func(context.Context, demands, mergerequest.MergeRequest) (committers, error)

// committers is findCommitters outside of transactions. It reads the repository, which remembers the result.
func (f *Family) committers(ctx context.Context, d demands, m mergerequest.MergeRequest) (c committers, err error) {
	repo, err := f.Repositories.Content(ctx, d.project)
	if err == nil {
		c.emails, err = history.Emails(ctx, repo, m.Base, m.Head)
	}
	c.unreadable = err != nil
	return c, ctx.Err()
}

// committersBefore returns findCommitters for a transaction on a merge request, which must not wait for Git. It reads the committers now. In the
// transaction, the error is mergerequest.ErrOutdated if the commits are others by then, or if the project refuses committers only since then.
func (f *Family) committersBefore(ctx context.Context, m mergerequest.MergeRequest) (findCommitters, error) {
	d, err := f.demands(ctx, m.In)
	if err != nil {
		return nil, err
	}
	refused := d.refuseCommitters(m)
	var known committers
	if refused {
		known, err = f.committers(ctx, d, m)
	}
	return func(_ context.Context, _ demands, now mergerequest.MergeRequest) (committers, error) {
		if !refused || now.Base != m.Base || now.Head != m.Head {
			return committers{}, mergerequest.ErrOutdated
		}
		return known, nil
	}, err
}

// refuseCommitters reports whether approvals by the committers of a merge request do not count.
func (d demands) refuseCommitters(m mergerequest.MergeRequest) bool {
	return d.RefuseCommitters && m.Head != "" && m.State != mergerequest.Merged
}

// barred reports whether the project refuses approvals of a merge request by a user.
func (f *Family) barred(ctx context.Context, find findCommitters, d demands, m mergerequest.MergeRequest, u database.User) (bool, error) {
	if u.UID == m.Author.UID && !d.AllowAuthor {
		return true, nil
	}
	if !d.refuseCommitters(m) {
		return false, nil
	}
	person, err := item.Person(ctx, f.Catalog, u)
	if err != nil || person.Spec.Email == "" {
		return false, catalog.IgnoreNotFound(err)
	}
	c, err := find(ctx, d, m)
	return err == nil && c.include(person.Spec.Email), err
}

// counting returns the approvals of a merge request that the project does not refuse.
func (f *Family) counting(
	ctx context.Context, find findCommitters, d demands, m mergerequest.MergeRequest, all []mergerequest.Approval,
) (counting []mergerequest.Approval, err error) {
	for _, a := range all {
		barred, err := f.barred(ctx, find, d, m, a.User)
		if err != nil {
			return nil, err
		}
		if !barred {
			counting = append(counting, a)
		}
	}
	return counting, nil
}
