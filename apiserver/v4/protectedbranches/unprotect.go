package protectedbranches

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// changeable returns an error if the unprotect levels of a protection in the project or group itself do not permit the caller to change it.
func (f *Family) changeable(ctx context.Context, s auth.Subject, name string) error {
	b, err := f.protections.Get(ctx, s, name)
	if err != nil {
		return err
	}
	return f.checkUnprotect(ctx, s, b)
}

// checkUnprotect is changeable for a given protection.
func (f *Family) checkUnprotect(ctx context.Context, s auth.Subject, b *v1alpha1.ProtectedBranch) error {
	rule := protection.Rule{Name: b.Spec.Branch}
	for _, l := range b.Spec.Unprotect {
		resolved, err := protection.Resolve(ctx, f.Catalog, s.Scope, b.Namespace, l, f.Clock.Now())
		if err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
		// An unresolved level is the zero Grant, which permits no one.
		rule.Unprotect = append(rule.Unprotect, protection.GrantOf(resolved))
	}
	actor := f.Guard.Actor(s)
	may, err := actor.MayUnprotect(ctx, rule)
	if err == nil && !may {
		err = endpoint.Forbidden("").Describe("%s", actor.Unprotecting(rule))
	}
	return err
}
