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

// JobTokenScopesNaming returns the job token scopes, of whatever namespace, in which an entry names a project by this id and UID.
func (c *Catalog) JobTokenScopesNaming(ctx context.Context, id int64, uid string) ([]*v1alpha1.JobTokenScope, error) {
	found, err := c.jobTokenScopes(ctx, IndexGrantee, idKey(id))
	return slices.DeleteFunc(found, func(j *v1alpha1.JobTokenScope) bool {
		return !slices.ContainsFunc(j.Spec.Allowlist, func(e v1alpha1.AllowlistEntry) bool {
			return e.ProjectRef.ID == id && e.ProjectRef.UID == uid
		})
	}), err
}

// Allowed returns the project that an entry of a job token scope lets in, of whatever namespace, or ErrNotFound. One that is
// being deleted, or has no valid place in the tree, is not found: what holds it up is not for another namespace to know.
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
		err = fmt.Errorf("project %s: %w", Show(e.ProjectRef), ErrNotFound)
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
