package protectedbranches

import (
	"context"
	"errors"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// mayUnprotect reports whether a caller who may write protections may change or remove this one: an administrator, or whom
// one of its levels for that lets through.
func (f *Family) mayUnprotect(ctx context.Context, s auth.Subject, b *v1alpha1.ProtectedBranch) (bool, error) {
	if s.Access.Admin || s.Caller.User == nil {
		return s.Access.Admin, nil
	}
	for _, l := range b.Spec.Unprotect {
		resolved, err := f.catalog.ResolveLevel(ctx, s.Scope, b.Namespace, l)
		if errors.Is(err, catalog.ErrNotFound) {
			continue // It lets nobody through.
		}
		if err != nil {
			return false, err
		}
		if holds, err := f.holds(ctx, s, resolved); holds || err != nil {
			return holds, err
		}
	}
	return len(b.Spec.Unprotect) == 0, nil
}

func (f *Family) holds(ctx context.Context, s auth.Subject, l v1alpha1.ResolvedAccessLevel) (bool, error) {
	switch {
	case l.UserID != 0:
		return s.Caller.Is(l.UserID), nil
	case l.GroupID != 0:
		g, err := f.catalog.GroupByID(ctx, l.GroupID)
		if err != nil {
			return false, err
		}
		r, err := f.catalog.GroupRole(ctx, s.Caller.User, g, time.Now())
		return r > role.None, err
	default:
		// Whoever writes protections is at least a maintainer.
		return l.Role == v1alpha1.AccessDeveloper || l.Role == v1alpha1.AccessMaintainer, nil
	}
}
