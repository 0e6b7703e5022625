package project

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesslevel"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// protectDefault creates a ProtectedBranch for the default branch, once, when the branch exists, and removes it when somebody declares
// another one for the same branch. Until then, protection.Rules protects the branch in the same way.
func (c *Controller) protectDefault(ctx context.Context, p *v1alpha1.Project) error {
	done := p.Status.ProtectedDefaultBranch
	if done == "" {
		if p.Status.HeadCommit == "" || object.CheckBranchName(p.Status.DefaultBranch) != nil {
			return nil //nolint:nilerr // no ProtectedBranch can name the branch
		}
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
		if holder, err = c.createDefault(ctx, p, branch); err != nil {
			return err
		}
	}
	p.Status.ProtectedDefaultBranch, p.Status.ProtectedDefaultBranchVersion = branch, holder.ResourceVersion
	return nil
}

// createDefault creates the project's own protection of a branch, or returns the one that it has created before.
func (c *Controller) createDefault(ctx context.Context, p *v1alpha1.Project, branch string) (*v1alpha1.ProtectedBranch, error) {
	maintainers := []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}} // the default
	b := &v1alpha1.ProtectedBranch{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace,
			Name:      v1alpha1.NaturalName(p.Name, branch),
			Labels:    map[string]string{v1alpha1.LabelDefaultProtection: "true"},
		},
		Spec: v1alpha1.ProtectedBranchSpec{
			ProjectRef: ptr.To(catalog.ReferNamed(p)), // never a later project of this name
			Branch:     branch,
			Push:       maintainers, Merge: maintainers, Unprotect: maintainers,
		},
	}
	if err := controllerutil.SetControllerReference(p, b, c.frame.Client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return nil, fmt.Errorf("setting the owner of the protection of %s: %w", branch, err)
	}
	key := client.ObjectKeyFromObject(b)
	c.blocked.Store(key, client.ObjectKeyFromObject(p)) // before looking: it can appear and disappear at any time
	there := &v1alpha1.ProtectedBranch{}
	if err := c.frame.Client.Get(ctx, key, there); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("looking for the protection of %s: %w", branch, err)
	} else if err == nil && catalog.Belongs(there, p) && there.Spec.Branch == branch {
		c.blocked.Delete(key)
		return there, nil
	} else if err == nil {
		return nil, inTheWay(there, p, branch)
	}
	// The REST API shows it from now on, together with the project, and its controller only has to write a status.
	id, err := c.ids.Allocate(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("allocating an id for the protection of %s: %w", branch, err)
	}
	b.Spec.ID = id
	if _, err := accesslevel.Assign(ctx, c.ids, b); err != nil {
		return nil, err
	}
	told := audit.WithReason(ctx, audit.Event{Action: "protect", Reason: "it is the default branch"})
	if err := c.frame.Client.Create(told, b); apierrors.IsAlreadyExists(err) {
		return nil, frame.Progressing(0, v1alpha1.ReasonProgressing, "the default branch %s has no ProtectedBranch yet: looking at ProtectedBranch %s", branch, b.Name)
	} else if err != nil {
		return nil, fmt.Errorf("protecting %s: %w", branch, err)
	}
	c.blocked.Delete(key)
	return b, nil
}

// inTheWay returns the outcome for a project whose protection of the default branch cannot have its name, because another object has it.
func inTheWay(there *v1alpha1.ProtectedBranch, p *v1alpha1.Project, branch string) error {
	former := func(o metav1.OwnerReference) bool { return o.Kind == "Project" && o.Name == p.Name && o.UID != p.UID }
	if slices.ContainsFunc(there.OwnerReferences, former) {
		return frame.Progressing(leftoverDelay, v1alpha1.ReasonProgressing, "the default branch %s has no ProtectedBranch yet, and only Maintainers can push to it: "+
			"waiting until the garbage collector removes ProtectedBranch %s, which a deleted project of this name has left", branch, there.Name)
	}
	return frame.Stalled(v1alpha1.ReasonAlreadyExists, "the default branch %s has no ProtectedBranch yet, and only Maintainers can push to it: "+
		"ProtectedBranch %s has the name that it needs, and is not for this branch of this project: delete that object, and create it again under another "+
		"name if you need it, or declare a ProtectedBranch for the default branch", branch, there.Name)
}

// yield removes the project's own protection of a branch if another one for the same branch is in force.
func (c *Controller) yield(ctx context.Context, p *v1alpha1.Project, scope catalog.Scope, branch string) error {
	holder, err := protection.Holder(ctx, c.frame.Catalog, scope, branch)
	if err != nil || holder == nil || protection.IsDefault(holder) {
		return err
	}
	own := &v1alpha1.ProtectedBranch{}
	key := client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.NaturalName(p.Name, branch)}
	if err := c.frame.Client.Get(ctx, key, own); err != nil {
		return client.IgnoreNotFound(err)
	}
	if own.UID == holder.UID || !protection.IsDefault(own) || !metav1.IsControlledBy(own, p) {
		return nil
	}
	told := audit.WithReason(ctx, audit.Event{Action: "remove", Reason: "ProtectedBranch " + holder.Name + " protects the same branch"})
	err = c.frame.Client.Delete(told, own, client.Preconditions{UID: &own.UID, ResourceVersion: &own.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("leaving the protection of %s to %s: %w", branch, holder.Name, err)
	}
	return nil
}

// onProtection maps a protection to the project that waits for its name, and a declared protection to its project, whose own protection it
// may replace.
func (c *Controller) onProtection(ctx context.Context, obj client.Object) (woken []reconcile.Request) {
	b := obj.(*v1alpha1.ProtectedBranch)
	if waiting, ok := c.blocked.LoadAndDelete(client.ObjectKeyFromObject(b)); ok {
		woken = append(woken, reconcile.Request{NamespacedName: waiting.(client.ObjectKey)})
	}
	if protection.IsDefault(b) || b.Spec.ProjectRef == nil {
		return woken
	}
	target, err := c.frame.Catalog.Target(ctx, b)
	p, ok := target.(*v1alpha1.Project)
	if err != nil || !ok || cmp.Or(p.Status.ProtectedDefaultBranch, catalog.DefaultBranch(p)) != b.Spec.Branch {
		return woken
	}
	return append(woken, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
}
