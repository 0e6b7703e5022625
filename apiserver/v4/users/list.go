package users

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type listRequest struct {
	endpoint.Paging
	Search        string                       `param:"search" doc:"Part of a name or username, or for administrators of an email address."`
	Username      string                       `param:"username" doc:"A username, whatever its case."`
	Active        bool                         `param:"active" doc:"Only users who can use the forge."`
	Blocked       bool                         `param:"blocked" doc:"Only blocked users."`
	Humans        bool                         `param:"humans" doc:"Only people."`
	ExcludeHumans bool                         `param:"exclude_humans" doc:"Only bots."`
	Admins        bool                         `param:"admins" doc:"Only administrators; for administrators."`
	External      bool                         `param:"external" doc:"Only external users; for administrators."`
	CreatedAfter  endpoint.Optional[time.Time] `param:"created_after" doc:"For administrators."`
	CreatedBefore endpoint.Optional[time.Time] `param:"created_before" doc:"For administrators."`
	OrderBy       string                       `param:"order_by" values:"id,name,username,created_at,updated_at" default:"id" doc:"For administrators; id for others."`
	Sort          string                       `param:"sort" values:"asc,desc" default:"desc" doc:"For administrators; desc for others."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[User], error) {
	admin := s.Access.Admin
	all, err := f.candidates(ctx, s.Caller, r)
	if err != nil {
		return endpoint.List[User]{}, err
	}
	all = store.Visible(all, func(u *v1alpha1.User) bool { return r.matches(u, admin) })
	order, sort := r.OrderBy, r.Sort
	if !admin {
		order, sort = "id", "desc"
	}
	slices.SortFunc(all, by(order))
	if sort == "desc" {
		slices.Reverse(all)
	}
	return endpoint.Page(r.Paging, all, func(u *v1alpha1.User) User {
		if admin {
			return f.full(u, true)
		}
		return summary(u, f.WebURL)
	}), nil
}

// candidates returns all users, or the user or bot with a username.
func (f *Family) candidates(ctx context.Context, c auth.Caller, r *listRequest) ([]*v1alpha1.User, error) {
	if r.Username == "" {
		return catalog.All[*v1alpha1.User](ctx, f.Catalog)
	}
	u, err := f.Catalog.UserByUsername(ctx, r.Username)
	if errors.Is(err, catalog.ErrNotFound) {
		u, err = f.Guard.BotNamed(ctx, c, r.Username)
	}
	if err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	return []*v1alpha1.User{u}, nil
}

func (r *listRequest) matches(u *v1alpha1.User, toAdmin bool) bool {
	blocked, bot := u.InState() == v1alpha1.UserBlocked, u.Spec.Type == v1alpha1.UserBot
	switch {
	case r.Active && !u.Active(), r.Blocked && !blocked, r.Humans && bot, r.ExcludeHumans && !bot, !r.finds(u, toAdmin):
		return false
	case !toAdmin:
		return true
	}
	created := u.CreationTimestamp.Time
	return (!r.Admins || u.Spec.Admin) && (!r.External || u.Spec.External) &&
		(r.CreatedAfter.Value.IsZero() || created.After(r.CreatedAfter.Value)) &&
		(r.CreatedBefore.Value.IsZero() || created.Before(r.CreatedBefore.Value))
}

// finds compares the search with the fields of a user that the caller can see.
func (r *listRequest) finds(u *v1alpha1.User, toAdmin bool) bool {
	search := strings.ToLower(r.Search)
	in := func(text string) bool { return strings.Contains(strings.ToLower(text), search) }
	return in(u.Spec.Username) || in(catalog.DisplayName(u)) || toAdmin && in(u.Spec.Email)
}

// by compares users by a field, and equal ones by id. The creation time stands in for the time of the last change, which is not stored.
func by(field string) func(a, b *v1alpha1.User) int {
	return func(a, b *v1alpha1.User) int {
		var c int
		switch field {
		case "name":
			c = cmp.Compare(strings.ToLower(catalog.DisplayName(a)), strings.ToLower(catalog.DisplayName(b)))
		case "username":
			c = cmp.Compare(strings.ToLower(a.Spec.Username), strings.ToLower(b.Spec.Username))
		case "created_at", "updated_at":
			c = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return cmp.Or(c, cmp.Compare(a.RESTID(), b.RESTID()))
	}
}
