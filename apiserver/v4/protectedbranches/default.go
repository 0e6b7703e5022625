package protectedbranches

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/protection"
)

const (
	// shownWithin limits the wait until the cache shows an object that another process created.
	shownWithin  = 2 * time.Second
	pollInterval = 5 * time.Millisecond
)

// protect creates a protection. It replaces the protection that the project controller creates for the default branch of a new project,
// whether or not that one exists yet.
func (f *Family) protect(ctx context.Context, s auth.Subject, b *v1alpha1.ProtectedBranch) (*v1alpha1.ProtectedBranch, error) {
	holder, err := protection.Holder(ctx, f.Catalog, s.Scope, b.Spec.Branch)
	if err != nil {
		return nil, err
	}
	if holder == nil {
		if _, err := accesslevel.Assign(ctx, f.IDs, b); err != nil {
			return nil, err
		}
		if err := f.protections.Create(ctx, b); !errors.Is(err, store.ErrExists) {
			return b, err
		}
		if holder, err = f.shown(ctx, s.Scope, b.Spec.Branch); err != nil {
			return nil, err
		}
	}
	if holder == nil || !protection.IsDefault(holder) {
		return nil, exists(b.Spec.Branch)
	}
	return f.replace(ctx, s, b.Spec)
}

// shown waits until the cache shows the protection of a branch that another process created. It returns nil after a timeout.
func (f *Family) shown(ctx context.Context, scope catalog.Scope, branch string) (holder *v1alpha1.ProtectedBranch, err error) {
	err = wait.PollUntilContextTimeout(ctx, pollInterval, shownWithin, true, func(ctx context.Context) (bool, error) {
		var err error
		holder, err = protection.Holder(ctx, f.Catalog, scope, branch)
		return holder != nil, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, nil
	}
	return holder, err
}

// replace replaces the spec of the protection that the project controller created.
func (f *Family) replace(ctx context.Context, s auth.Subject, wanted v1alpha1.ProtectedBranchSpec) (*v1alpha1.ProtectedBranch, error) {
	b, err := f.protections.Update(ctx, s, wanted.Branch, func(b *v1alpha1.ProtectedBranch) error {
		if !protection.IsDefault(b) {
			return exists(wanted.Branch)
		}
		if err := f.checkUnprotect(ctx, s, b); err != nil {
			return err
		}
		delete(b.Labels, v1alpha1.LabelDefaultProtection)
		wanted.ID, wanted.ProjectRef = b.RESTID(), b.Spec.ProjectRef // which cannot change
		b.Spec = *wanted.DeepCopy()
		_, err := accesslevel.Assign(ctx, f.IDs, b)
		return err
	})
	var refused *endpoint.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound { // it was deleted meanwhile
		return nil, exists(wanted.Branch)
	}
	return b, err
}
