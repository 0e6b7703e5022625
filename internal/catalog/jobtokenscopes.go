package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

func (c *Catalog) jobTokenScopes(ctx context.Context, index string, keys ...string) ([]*v1alpha1.JobTokenScope, error) {
	var l v1alpha1.JobTokenScopeList
	return list(ctx, c.reader, &l, func() []v1alpha1.JobTokenScope { return l.Items }, index, keys...)
}

// JobTokenScopeOf returns the job token scope of a project that is in force: the one that holds it of those that are declared for it;
// nil when there is none.
func (c *Catalog) JobTokenScopeOf(ctx context.Context, s Scope) (*v1alpha1.JobTokenScope, error) {
	found, err := c.jobTokenScopes(ctx, IndexProject, s.keys()...)
	if err != nil {
		return nil, err
	}
	return claim.Holder(belonging(found, s.Target()), claim.JobTokenScope(s.Target().GetUID())), nil
}

// JobTokenScopeKeys returns the keys in IndexProject of every way to declare a job token scope for the project of obj, which is
// one itself.
func (c *Catalog) JobTokenScopeKeys(ctx context.Context, obj client.Object) []string {
	p, err := c.Project(ctx, obj.GetNamespace(), obj.(*v1alpha1.JobTokenScope).Spec.ProjectRef)
	if err != nil {
		return nil // nothing is declared
	}
	return c.ProjectKeys(ctx, p)
}

// JobTokenScopesNaming returns the job token scopes, of whatever namespace, in which an entry names a project by this id and UID, or is
// recorded to have led by its id or full path to the one of this UID. The path may be empty.
func (c *Catalog) JobTokenScopesNaming(ctx context.Context, id int64, fullPath, uid string) ([]*v1alpha1.JobTokenScope, error) {
	keys := []string{idKey(id)}
	if fullPath != "" {
		keys = append(keys, pathKey(fullPath))
	}
	found, err := c.jobTokenScopes(ctx, IndexGrantee, keys...)
	return slices.DeleteFunc(found, func(j *v1alpha1.JobTokenScope) bool {
		return !slices.ContainsFunc(j.Spec.Allowlist, func(e v1alpha1.AllowlistEntry) bool {
			return e.ProjectRef.ID == id && e.ProjectRef.UID == uid
		}) && !slices.ContainsFunc(j.Status.RecordedAllowlist, func(led v1alpha1.AllowlistEntry) bool { return led.ProjectRef.UID == uid })
	}), err
}

// ErrEntryReplaced says that the path or id of an entry belongs to another tenant's project than the one that it led to. It is an
// ErrNotFound.
var ErrEntryReplaced = fmt.Errorf("belongs to another project than the one that was let in: to let that one in, declare the entry anew or "+
	"name the uid beside it: %w", ErrNotFound)

// LedTo returns what the status of a job token scope says of where an entry led that names its project by path or id alone; nil when
// it says nothing of the entry as it is now.
func LedTo(j *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry) *v1alpha1.Reference {
	if e.ProjectRef.Name != "" || e.ProjectRef.UID != "" {
		return nil
	}
	for i := range j.Status.RecordedAllowlist {
		if led := &j.Status.RecordedAllowlist[i].ProjectRef; sameButUID(*led, e.ProjectRef) {
			return led
		}
	}
	return nil
}

// Allowed returns the project that an entry of a job token scope lets in, of whatever namespace, or ErrNotFound. One that is
// being deleted, or has no valid place in the tree, is not found: what holds it up is not for another namespace to know. ErrEntryReplaced is one that
// whoever declared the entry does not know of.
func (c *Catalog) Allowed(ctx context.Context, j *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry) (Scope, error) {
	p, err := c.anyProject(ctx, j.Namespace, e.ProjectRef)
	if err != nil {
		return Scope{}, err
	}
	s, err := c.ProjectScope(ctx, p)
	if Misplaced(err) {
		p, err = nil, nil
	}
	if err == nil && (p == nil || !p.DeletionTimestamp.IsZero()) {
		err = ErrNotFound
	}
	if led := LedTo(j, e); err == nil && led != nil && led.UID != string(p.UID) && p.Namespace != j.Namespace {
		err = ErrEntryReplaced
	}
	if errors.Is(err, ErrNotFound) {
		return Scope{}, fmt.Errorf("project %s: %w", Show(e.ProjectRef), err)
	}
	return s, err
}

// Allows reports whether an entry of a job token scope lets a project in.
func (c *Catalog) Allows(ctx context.Context, j *v1alpha1.JobTokenScope, p *v1alpha1.Project) (bool, error) {
	keys := c.ProjectKeys(ctx, p)
	for _, e := range j.Spec.Allowlist {
		if !slices.Contains(keys, Key(j.Namespace, e.ProjectRef)) {
			continue
		}
		// The key may be that of an older project, too.
		s, err := c.Allowed(ctx, j, e)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return false, err
		case s.Project.UID == p.UID:
			return true, nil
		}
	}
	return false, nil
}
