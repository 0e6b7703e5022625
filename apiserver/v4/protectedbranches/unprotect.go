package protectedbranches

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// changeable refuses to change or remove a protection of the request's project: to those whom its unprotect levels do not let
// through, and when its declaration is not for REST callers to change.
func (f *Family) changeable(ctx context.Context, s auth.Project, b *v1alpha1.ProtectedBranch) error {
	may, err := f.mayUnprotect(ctx, s, b)
	if err != nil {
		return err
	}
	if !may {
		return endpoint.Forbidden("")
	}
	return refusal.Of(f.writer.Allow(ctx, s.Scope.Project, b), "")
}

// mayUnprotect reports whether a caller who may write protections may change or remove this one.
func (f *Family) mayUnprotect(ctx context.Context, s auth.Project, b *v1alpha1.ProtectedBranch) (bool, error) {
	rule := protection.Rule{Name: b.Spec.Branch}
	for _, l := range b.Spec.Unprotect {
		resolved, err := f.catalog.ResolveLevel(ctx, s.Scope, b.Namespace, l)
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return false, err
		}
		// An unresolved level is the zero Grant, which lets nobody through.
		rule.Unprotect = append(rule.Unprotect, catalog.Grant(resolved))
	}
	return f.guard.Actor(s.Subject).MayUnprotect(ctx, rule)
}
