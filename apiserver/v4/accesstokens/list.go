package accesstokens

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
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type listRequest struct {
	endpoint.Paging
	UserID         endpoint.Optional[int64]     `param:"user_id" doc:"Only tokens of this user."`
	Search         string                       `param:"search" doc:"Part of a name."`
	State          string                       `param:"state" values:"active,inactive" doc:"Only tokens that are accepted, or only others."`
	Revoked        endpoint.Optional[bool]      `param:"revoked" doc:"Only tokens that were revoked, or only others."`
	CreatedAfter   endpoint.Optional[time.Time] `param:"created_after"`
	CreatedBefore  endpoint.Optional[time.Time] `param:"created_before"`
	ExpiresAfter   endpoint.Optional[time.Time] `param:"expires_after"`
	ExpiresBefore  endpoint.Optional[time.Time] `param:"expires_before"`
	LastUsedAfter  endpoint.Optional[time.Time] `param:"last_used_after" doc:"Matches none: when a token was used is not kept."`
	LastUsedBefore endpoint.Optional[time.Time] `param:"last_used_before" doc:"Matches none."`
	Sort           string                       `param:"sort" values:"created_asc,created_desc,expires_asc,expires_desc,last_used_asc,last_used_desc,name_asc,name_desc" doc:"By id when omitted."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[Token], error) {
	all, err := f.candidates(ctx, s, r)
	if err != nil {
		return endpoint.List[Token]{}, err
	}
	now := f.clock.Now()
	all = slices.DeleteFunc(all, func(t owned) bool { return !r.matches(t, now) })
	field, order, _ := cutLast(r.Sort)
	slices.SortFunc(all, by(field))
	if order == "desc" {
		slices.Reverse(all)
	}
	return endpoint.Page(r.Paging, all, func(t owned) Token { return t.show(now) }), nil
}

// cutLast cuts a text at its last underscore.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// candidates returns the tokens of the user who is asked for, or all that the caller has to do with.
func (f *Family) candidates(ctx context.Context, s auth.Instance, r *listRequest) ([]owned, error) {
	of := s.Caller.User
	if id := r.UserID.Or(0); r.UserID.Set && !r.UserID.Null && !s.Caller.Is(id) {
		if !s.Has(s.Access, auth.AdminInstance) {
			return nil, endpoint.Unauthorized("")
		}
		var err error
		if of, err = f.catalog.User(ctx, v1alpha1.Reference{ID: id}); errors.Is(err, catalog.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	} else if s.Has(s.Access, auth.AdminInstance) && id == 0 {
		found, err := catalog.All[*v1alpha1.AccessToken](ctx, f.catalog)
		return f.withUsers(ctx, found, err)
	}
	found, err := accesstoken.Of(ctx, f.catalog, of)
	return f.withUsers(ctx, found, err)
}

// withUsers leaves out what stands for nobody, or has no id yet.
func (f *Family) withUsers(ctx context.Context, found []*v1alpha1.AccessToken, err error) ([]owned, error) {
	if err != nil {
		return nil, err
	}
	all := make([]owned, 0, len(found))
	for _, t := range store.Known(found, nil) {
		u, err := f.catalog.User(ctx, t.Spec.UserRef)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, owned{t, u})
	}
	return all, nil
}

func (r *listRequest) matches(t owned, now time.Time) bool {
	active := !t.Spec.Revoked && !t.expired(now)
	var expires time.Time
	if t.Spec.ExpiresAt != nil {
		expires = t.Spec.ExpiresAt.Time
	}
	switch {
	case r.State == "active" && !active, r.State == "inactive" && active,
		r.Revoked.Set && !r.Revoked.Null && r.Revoked.Value != t.Spec.Revoked,
		!strings.Contains(strings.ToLower(t.Spec.Description), strings.ToLower(r.Search)):
		return false
	}
	return between(t.CreationTimestamp.Time, r.CreatedAfter, r.CreatedBefore) &&
		between(expires, r.ExpiresAfter, r.ExpiresBefore) &&
		between(time.Time{}, r.LastUsedAfter, r.LastUsedBefore)
}

// between reports whether a moment is within bounds; the zero one is within none.
func between(at time.Time, after, before endpoint.Optional[time.Time]) bool {
	lower, upper := after.Value, before.Value
	if at.IsZero() {
		return lower.IsZero() && upper.IsZero()
	}
	return (lower.IsZero() || at.After(lower)) && (upper.IsZero() || at.Before(upper))
}

// by compares tokens by a field, and equal ones by id. Tokens that never expire come last.
func by(field string) func(a, b owned) int {
	return func(a, b owned) int {
		var c int
		switch field {
		case "created":
			c = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		case "name":
			c = cmp.Compare(strings.ToLower(a.Spec.Description), strings.ToLower(b.Spec.Description))
		case "expires":
			c = compareExpiry(a, b)
		}
		return cmp.Or(c, cmp.Compare(a.RESTID(), b.RESTID()))
	}
}

func compareExpiry(a, b owned) int {
	at, bt := a.Spec.ExpiresAt, b.Spec.ExpiresAt
	switch {
	case at == nil && bt == nil:
		return 0
	case at == nil:
		return 1
	case bt == nil:
		return -1
	default:
		return at.Compare(bt.Time)
	}
}
