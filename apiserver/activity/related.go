package activity

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/forgeplane/forgeplane/api/activity/v1alpha1"
	core "github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// related are the objects that items name, as far as they exist.
type related struct {
	// scopes are the projects with their groups, of items with labels or a milestone. They lack projects without a place in the tree.
	scopes     map[types.UID]catalog.Scope
	users      map[types.UID]*entity.UserSummary
	labels     item.LabelsInForce
	milestones map[int64]milestone.Milestone
}

// related looks up the objects that items name, and further users.
func (o Options) related(ctx context.Context, in projects, items []row, users ...database.User) (r related, err error) {
	var milestones []int64
	r.scopes = map[types.UID]catalog.Scope{}
	for _, i := range items {
		users = append(append(users, i.author), i.assignees...)
		if i.milestone != 0 {
			milestones = append(milestones, i.milestone)
		}
		if _, known := r.scopes[i.project]; known || in[i.project] == nil || i.milestone == 0 && len(i.labels) == 0 {
			continue
		}
		scope, err := o.Catalog.ProjectScope(ctx, in[i.project])
		switch {
		case err == nil:
			r.scopes[i.project] = scope
		case !catalog.Misplaced(err):
			return r, err
		}
	}
	if r.users, err = item.Users(ctx, o.Catalog, o.WebURL, users...); err != nil {
		return r, err
	}
	if r.labels, err = item.InForce(ctx, o.Catalog, r.scopes); err != nil {
		return r, err
	}
	r.milestones, err = o.Stores.Milestones.WithIDs(ctx, milestones...)
	return r, err
}

// spec returns the part of the spec that merge requests and issues share. It leaves out labels and milestones of groups that the project has left:
// readers of its namespace may not see these groups.
func (r related) spec(p *core.Project, i row) v1alpha1.ItemSpec {
	spec := v1alpha1.ItemSpec{
		ProjectRef: v1alpha1.ProjectReference{Name: p.Name}, Title: i.title,
		Author: r.username(i.author), Assignees: r.usernames(i.assignees), Labels: r.labels.Titles(i.project, i.labels),
	}
	in, placed := r.scopes[i.project]
	if m, known := r.milestones[i.milestone]; known && placed && item.HasMilestone(in, m) {
		spec.Milestone = m.Title
	}
	return spec
}

// username returns the username of a user, or an empty string if the user does not exist.
func (r related) username(u database.User) string {
	if known := r.users[u.UID]; known != nil {
		return known.Username
	}
	return ""
}

func (r related) usernames(users []database.User) (all []string) {
	for _, known := range item.Known(r.users, users) {
		all = append(all, known.Username)
	}
	return all
}
