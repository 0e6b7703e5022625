package accesstokens

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
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
	LastUsedAfter  endpoint.Optional[time.Time] `param:"last_used_after"`
	LastUsedBefore endpoint.Optional[time.Time] `param:"last_used_before"`
	Sort           string                       `param:"sort" values:"created_asc,created_desc,expires_asc,expires_desc,last_used_asc,last_used_desc,name_asc,name_desc" doc:"By id when omitted."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[entity.Token], error) {
	all, err := f.candidates(ctx, s, r)
	if err != nil {
		return endpoint.List[entity.Token]{}, err
	}
	field, order, _ := cutLast(r.Sort)
	var used map[types.UID]time.Time
	everyUse := field == "last_used" || r.LastUsedAfter.Set || r.LastUsedBefore.Set
	if everyUse {
		// Without the uses the answer would be wrong.
		if used, err = tokenuse.LastUsed(ctx, f.Activity.Uses, tokenuse.KindAccessToken, all...); err != nil {
			return endpoint.List[entity.Token]{}, err
		}
	}
	now := f.Clock.Now()
	all = slices.DeleteFunc(all, func(t owned) bool { return !r.matches(t, used[t.UID], now) })
	slices.SortFunc(all, by(field, used))
	if order == "desc" {
		slices.Reverse(all)
	}
	if !everyUse {
		used = f.used(ctx, endpoint.Rows(r.Paging, all)...)
	}
	return endpoint.Page(r.Paging, all, func(t owned) entity.Token { return f.show(t, used) }), nil
}

// cutLast cuts a text at its last underscore.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// candidates returns the tokens of the requested user, or else all tokens that the caller can list.
func (f *Family) candidates(ctx context.Context, s auth.Instance, r *listRequest) ([]owned, error) {
	of := s.Caller.User
	if id := r.UserID.Or(0); r.UserID.Set && !r.UserID.Null && !s.Caller.Is(id) {
		if !s.Has(s.Access, auth.AdminInstance) {
			return nil, endpoint.Unauthorized("").Describe("Only administrators can list the access tokens of other users.")
		}
		var err error
		if of, err = f.Catalog.User(ctx, v1alpha1.Reference{ID: id}); errors.Is(err, catalog.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	} else if s.Has(s.Access, auth.AdminInstance) && id == 0 {
		found, err := catalog.All[*v1alpha1.AccessToken](ctx, f.Catalog)
		return f.withUsers(ctx, found, err)
	}
	found, err := accesstoken.Of(ctx, f.Catalog, of)
	return f.withUsers(ctx, found, err)
}

// withUsers omits tokens without an owner or an id.
func (f *Family) withUsers(ctx context.Context, found []*v1alpha1.AccessToken, err error) ([]owned, error) {
	if err != nil {
		return nil, err
	}
	all := make([]owned, 0, len(found))
	for _, t := range store.Visible(found, nil) {
		u, err := f.Catalog.User(ctx, t.Spec.UserRef)
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

func (r *listRequest) matches(t owned, used, now time.Time) bool {
	active := !accesstoken.Ended(t.AccessToken, now)
	switch {
	case r.State == "active" && !active, r.State == "inactive" && active,
		r.Revoked.Set && !r.Revoked.Null && r.Revoked.Value != t.Spec.Revoked,
		!strings.Contains(strings.ToLower(t.Spec.Description), strings.ToLower(r.Search)):
		return false
	}
	return between(t.CreationTimestamp.Time, r.CreatedAfter, r.CreatedBefore) &&
		between(expiry(t), r.ExpiresAfter, r.ExpiresBefore) &&
		between(used, r.LastUsedAfter, r.LastUsedBefore)
}

// between reports whether a time is within bounds. The zero time never is.
func between(at time.Time, after, before endpoint.Optional[time.Time]) bool {
	lower, upper := after.Value, before.Value
	if at.IsZero() {
		return lower.IsZero() && upper.IsZero()
	}
	return (lower.IsZero() || at.After(lower)) && (upper.IsZero() || at.Before(upper))
}

// by compares tokens by a field, and equal ones by id. Tokens that never expire, or were never used, come last.
func by(field string, used map[types.UID]time.Time) func(a, b owned) int {
	return func(a, b owned) int {
		var c int
		switch field {
		case "created":
			c = a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		case "name":
			c = cmp.Compare(strings.ToLower(a.Spec.Description), strings.ToLower(b.Spec.Description))
		case "expires":
			c = compare(expiry(a), expiry(b))
		case "last_used":
			c = compare(used[a.UID], used[b.UID])
		}
		return cmp.Or(c, cmp.Compare(a.RESTID(), b.RESTID()))
	}
}

// expiry returns the time at which a token expires, or the zero time.
func expiry(t owned) time.Time {
	if t.Spec.ExpiresAt == nil {
		return time.Time{}
	}
	return t.Spec.ExpiresAt.Time
}

// compare compares times. Zero comes last.
func compare(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	default:
		return a.Compare(b)
	}
}
