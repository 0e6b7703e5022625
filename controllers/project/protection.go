package project

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// leftoverDelay is the delay before retrying to protect the default branch while the protection of a deleted project is in the way. The
// garbage collector removes that within seconds.
const leftoverDelay = time.Second

// protectDefault creates a ProtectedBranch for the default branch, once, and removes it when somebody declares another one for the same
// branch.
func (c *Controller) protectDefault(ctx context.Context, p *v1alpha1.Project) error {
	done := p.Status.ProtectedDefaultBranch
	if done == "" {
		return c.protect(ctx, p, p.Status.DefaultBranch)
	}
	scope, err := c.frame.Catalog.ProjectScope(ctx, p)
	if err != nil {
		return err
	}
	return c.yield(ctx, p, scope, done)
}

// protect creates a ProtectedBranch for a branch unless it is protected already.
func (c *Controller) protect(ctx context.Context, p *v1alpha1.Project, branch string) error {
	scope, err := c.frame.Catalog.ProjectScope(ctx, p)
	if err != nil {
		return err
	}
	holder, err := protection.Holder(ctx, c.frame.Catalog, scope, branch)
	if err != nil {
		return err
	}
	if holder == nil {
		if err := c.createDefault(ctx, p, branch); err != nil {
			return err
		}
	}
	p.Status.ProtectedDefaultBranch = branch
	return nil
}

func (c *Controller) createDefault(ctx context.Context, p *v1alpha1.Project, branch string) error {
	maintainers := []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}} // the default
	b := &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace,
			Name:      naturalkey.Name(p.Name, branch),
			Labels:    map[string]string{v1alpha1.LabelDefaultProtection: "true"},
		},
		Spec: v1alpha1.ProtectedBranchSpec{
			ProjectRef: &v1alpha1.Reference{Name: p.Name},
			Branch:     branch,
			Push:       maintainers, Merge: maintainers, Unprotect: maintainers,
		},
	}
	if err := controllerutil.SetControllerReference(p, b, c.frame.Client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("setting the owner of the protection of %s: %w", branch, err)
	}
	there := &v1alpha1.ProtectedBranch{}
	if err := c.frame.Client.Get(ctx, client.ObjectKeyFromObject(b), there); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for the protection of %s: %w", branch, err)
	} else if err == nil && !catalog.Belongs(there, p) {
		return frame.WaitingFor(leftoverDelay, v1alpha1.ReasonProgressing,
			"the default branch %s is not protected yet: waiting until ProtectedBranch %s, which a deleted project of this name has left, is removed", branch, b.Name)
	}
	// The REST API shows it from now on, together with the project, and its controller only has to write a status.
	id, err := c.ids.Allocate(ctx, b)
	if err != nil {
		return fmt.Errorf("allocating an id for the protection of %s: %w", branch, err)
	}
	b.Spec.ID = id
	if _, err := accesslevel.Assign(ctx, c.ids, b); err != nil {
		return err
	}
	told := audit.Because(ctx, audit.Event{Action: "protect", Reason: "it is the default branch"})
	if err := c.frame.Client.Create(told, b); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("protecting %s: %w", branch, err)
	}
	return nil
}

// yield removes the project's own protection of a branch if another one for the same branch is in force.
func (c *Controller) yield(ctx context.Context, p *v1alpha1.Project, scope catalog.Scope, branch string) error {
	holder, err := protection.Holder(ctx, c.frame.Catalog, scope, branch)
	if err != nil || holder == nil || protection.IsDefault(holder) {
		return err
	}
	own := &v1alpha1.ProtectedBranch{}
	key := client.ObjectKey{Namespace: p.Namespace, Name: naturalkey.Name(p.Name, branch)}
	if err := c.frame.Client.Get(ctx, key, own); err != nil {
		return client.IgnoreNotFound(err)
	}
	if own.UID == holder.UID || !protection.IsDefault(own) || !metav1.IsControlledBy(own, p) {
		return nil
	}
	told := audit.Because(ctx, audit.Event{Action: "remove", Reason: "ProtectedBranch " + holder.Name + " protects the same branch"})
	err = c.frame.Client.Delete(told, own, client.Preconditions{UID: &own.UID, ResourceVersion: &own.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("leaving the protection of %s to %s: %w", branch, holder.Name, err)
	}
	return nil
}

// overridden maps a declared protection to its project, whose own protection it may replace.
func (c *Controller) overridden(ctx context.Context, obj client.Object) []reconcile.Request {
	b := obj.(*v1alpha1.ProtectedBranch)
	if protection.IsDefault(b) || b.Spec.ProjectRef == nil {
		return nil
	}
	p, err := c.frame.Catalog.Project(ctx, b.Namespace, *b.Spec.ProjectRef)
	if err != nil || p.Status.ProtectedDefaultBranch != b.Spec.Branch {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(p)}}
}
