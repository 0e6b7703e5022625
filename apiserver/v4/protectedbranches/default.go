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
	// shownWithin is how long the cache may take to show what somebody else has made.
	shownWithin  = 2 * time.Second
	pollInterval = 5 * time.Millisecond
)

// protect declares a protection. It replaces the one that a project creates for its default branch some time after its own creation; for
// the client it makes no difference whether that one exists yet.
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

// shown waits for the protection of a branch that somebody else has made just now; nil when it does not appear.
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

// replace has the protection that a project made be what is wanted.
func (f *Family) replace(ctx context.Context, s auth.Subject, wanted v1alpha1.ProtectedBranchSpec) (*v1alpha1.ProtectedBranch, error) {
	b, err := f.protections.Update(ctx, s, wanted.Branch, func(b *v1alpha1.ProtectedBranch) error {
		if !protection.IsDefault(b) {
			return exists(wanted.Branch)
		}
		if err := f.checkUnprotect(ctx, s, b); err != nil {
			return err
		}
		delete(b.Labels, v1alpha1.LabelDefaultProtection)
		wanted.ID, wanted.ProjectRef = b.RESTID(), b.Spec.ProjectRef // which are fixed
		b.Spec = *wanted.DeepCopy()
		_, err := accesslevel.Assign(ctx, f.IDs, b)
		return err
	})
	var refused *endpoint.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound { // somebody has removed it meanwhile
		return nil, exists(wanted.Branch)
	}
	return b, err
}
