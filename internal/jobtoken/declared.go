package jobtoken

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

const (
	// IndexGrantee has the keys of the projects that a job token scope allows.
	IndexGrantee = "grantee"
	// IndexGranteeGroup has the keys of the groups whose projects a job token scope allows.
	IndexGranteeGroup = "grantee-group"
)

// Indexes returns the indexes of job token scopes.
func Indexes() []catalog.Index {
	projects := func(o client.Object) (keys []string) {
		for _, e := range o.(*v1alpha1.JobTokenScope).Spec.Allowlist {
			keys = append(keys, catalog.Key(o.GetNamespace(), e.ProjectRef))
		}
		return keys
	}
	groups := func(o client.Object) (keys []string) {
		for _, e := range o.(*v1alpha1.JobTokenScope).Spec.GroupAllowlist {
			keys = append(keys, catalog.Key(o.GetNamespace(), e.GroupRef))
		}
		return keys
	}
	return []catalog.Index{
		{Of: &v1alpha1.JobTokenScope{}, Name: IndexGrantee, Values: projects},
		{Of: &v1alpha1.JobTokenScope{}, Name: IndexGranteeGroup, Values: groups},
	}
}

// ScopeOf returns the job token scope that is in force for a project, or nil. If several are declared, it is the one that holds the claim.
func ScopeOf(ctx context.Context, c *catalog.Catalog, s catalog.Scope) (*v1alpha1.JobTokenScope, error) {
	found, err := catalog.ListInScope[*v1alpha1.JobTokenScope](ctx, c, s)
	return claim.Holder(found, claim.JobTokenScope(s.Target().GetUID())), err
}

// Claims returns the claims of a job token scope.
func Claims(ctx context.Context, c *catalog.Catalog, s *v1alpha1.JobTokenScope) ([]claim.Claim, error) {
	return catalog.ClaimsIn(ctx, c, s, claim.JobTokenScope)
}

// Rivals returns the keys in catalog.IndexProject of all job token scopes for the project of obj, which is a job token scope.
func Rivals(c *catalog.Catalog) func(ctx context.Context, obj client.Object) []string {
	return func(ctx context.Context, obj client.Object) []string {
		p, err := c.Target(ctx, obj.(*v1alpha1.JobTokenScope))
		if err != nil {
			return nil // the project does not exist
		}
		return c.Keys(ctx, p)
	}
}

// ScopesNaming returns the job token scopes of all namespaces in which an entry names a project by this id and UID, or is recorded to have
// resolved to the project with this UID by its id or full path. The path can be empty.
func ScopesNaming(ctx context.Context, c *catalog.Catalog, id int64, fullPath, uid string) ([]*v1alpha1.JobTokenScope, error) {
	keys := []string{catalog.Key("", v1alpha1.Reference{ID: id})}
	if fullPath != "" {
		keys = append(keys, catalog.Key("", v1alpha1.Reference{Path: fullPath}))
	}
	found, err := catalog.List[*v1alpha1.JobTokenScope](ctx, c, IndexGrantee, keys...)
	return slices.DeleteFunc(found, func(j *v1alpha1.JobTokenScope) bool {
		return !slices.ContainsFunc(j.Spec.Allowlist, func(e v1alpha1.AllowlistEntry) bool {
			return e.ProjectRef.ID == id && e.ProjectRef.UID == uid
		}) && !slices.ContainsFunc(j.Status.RecordedAllowlist, func(led v1alpha1.AllowlistEntry) bool { return led.ProjectRef.UID == uid })
	}), err
}

// ErrEntryReplaced is returned if the path or id of an entry resolved to one project, and now belongs to a project of another tenant. It is
// a catalog.ErrNotFound, too.
var ErrEntryReplaced = fmt.Errorf("now belongs to a different project, which this entry does not allow: to allow it, remove the entry and add it again, or "+
	"set its uid as well: %w", catalog.ErrNotFound)

// ResolvedProject returns the project that an entry with only a path or id resolved to, from the status of the scope. It is nil if the
// status does not have the current entry.
func ResolvedProject(j *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry) *v1alpha1.Reference {
	if e.ProjectRef.Name != "" || e.ProjectRef.UID != "" {
		return nil
	}
	for i := range j.Status.RecordedAllowlist {
		led := &j.Status.RecordedAllowlist[i].ProjectRef
		named := *led
		named.UID = ""
		if named == e.ProjectRef {
			return led
		}
	}
	return nil
}

// Allowed returns the project, in any namespace, that an entry of a job token scope allows, or catalog.ErrNotFound. It does not find a
// project that is being deleted or has no valid place in the tree, because other namespaces must not learn the reason. It returns
// ErrEntryReplaced if the entry now resolves to a project that its author did not name.
func Allowed(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry) (catalog.Scope, error) {
	p, err := c.AnyProject(ctx, j.Namespace, e.ProjectRef)
	if err != nil {
		return catalog.Scope{}, err
	}
	s, err := c.ProjectScope(ctx, p)
	if catalog.Misplaced(err) {
		p, err = nil, nil
	}
	if err == nil && (p == nil || !p.DeletionTimestamp.IsZero()) {
		err = catalog.ErrNotFound
	}
	if led := ResolvedProject(j, e); err == nil && led != nil && led.UID != string(p.UID) && p.Namespace != j.Namespace {
		err = ErrEntryReplaced
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return catalog.Scope{}, fmt.Errorf("project %s: %w", catalog.Show(e.ProjectRef), err)
	}
	return s, err
}

// Allows reports whether an entry of a job token scope allows a project.
func Allows(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, p *v1alpha1.Project) (bool, error) {
	keys := c.ProjectKeys(ctx, p)
	for _, e := range j.Spec.Allowlist {
		if !slices.Contains(keys, catalog.Key(j.Namespace, e.ProjectRef)) {
			continue
		}
		// The key can also match an older project.
		s, err := Allowed(ctx, c, j, e)
		switch {
		case errors.Is(err, catalog.ErrNotFound):
		case err != nil:
			return false, err
		case s.Project.UID == p.UID:
			return true, nil
		}
	}
	return false, nil
}

// AllowedGroup returns the scope of the group, in any namespace, that an entry of a job token scope allows. It returns the errors of
// catalog.Foreign.
func AllowedGroup(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, e v1alpha1.GroupAllowlistEntry) (catalog.Scope, error) {
	return c.Foreign(ctx, j.Namespace, e.GroupRef, j.Status.RecordedGroups)
}

// AllowsGroup reports whether an entry of a job token scope allows one of the groups.
func AllowsGroup(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, groups ...*v1alpha1.Group) (bool, error) {
	if len(j.Spec.GroupAllowlist) == 0 {
		return false, nil
	}
	var keys []string
	for _, g := range groups {
		keys = append(keys, c.GroupKeys(ctx, g)...)
	}
	for _, e := range j.Spec.GroupAllowlist {
		if !slices.Contains(keys, catalog.Key(j.Namespace, e.GroupRef)) {
			continue
		}
		// The key can also match an older group.
		s, err := AllowedGroup(ctx, c, j, e)
		switch {
		case errors.Is(err, catalog.ErrNotFound):
		case err != nil:
			return false, err
		case slices.ContainsFunc(groups, func(g *v1alpha1.Group) bool { return g.UID == s.Groups[0].UID }):
			return true, nil
		}
	}
	return false, nil
}

// lists reports whether the allowlists of a job token scope contain a project or a group above it.
func lists(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, p *v1alpha1.Project) (bool, error) {
	listed, err := Allows(ctx, c, j, p)
	if listed || err != nil || len(j.Spec.GroupAllowlist) == 0 {
		return listed, err
	}
	above, err := c.GroupsOf(ctx, p)
	if catalog.Misplaced(err) || errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return AllowsGroup(ctx, c, j, above...)
}
