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
	// IndexGrantee holds the keys of the projects that a job token scope lets in.
	IndexGrantee = "grantee"
	// IndexGranteeGroup holds the keys of the groups whose projects a job token scope lets in.
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

// ScopeOf returns the job token scope of a project that is in force: the one that holds it of those that are declared for it;
// nil when there is none.
func ScopeOf(ctx context.Context, c *catalog.Catalog, s catalog.Scope) (*v1alpha1.JobTokenScope, error) {
	found, err := catalog.In[*v1alpha1.JobTokenScope](ctx, c, s)
	return claim.Holder(found, claim.JobTokenScope(s.Target().GetUID())), err
}

// Claims returns what a job token scope claims.
func Claims(ctx context.Context, c *catalog.Catalog, s *v1alpha1.JobTokenScope) ([]claim.Claim, error) {
	return catalog.ClaimsIn(ctx, c, s, claim.JobTokenScope)
}

// Rivals returns the keys in catalog.IndexProject of every way to declare a job token scope for the project of obj, which is one itself.
func Rivals(c *catalog.Catalog) func(ctx context.Context, obj client.Object) []string {
	return func(ctx context.Context, obj client.Object) []string {
		p, err := c.Target(ctx, obj.(*v1alpha1.JobTokenScope))
		if err != nil {
			return nil // nothing is declared
		}
		return c.Keys(ctx, p)
	}
}

// ScopesNaming returns the job token scopes, of whatever namespace, in which an entry names a project by this id and UID, or is
// recorded to have led by its id or full path to the one of this UID. The path may be empty.
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

// ErrEntryReplaced says that the path or id of an entry belongs to another tenant's project than the one that it led to. It is a
// catalog.ErrNotFound, too.
var ErrEntryReplaced = fmt.Errorf("now belongs to a different project, which this entry does not allow: to allow it, remove the entry and add it again, or "+
	"set its uid as well: %w", catalog.ErrNotFound)

// LedTo returns what the status of a job token scope says of where an entry led that names its project by path or id alone; nil when
// it says nothing of the entry as it is now.
func LedTo(j *v1alpha1.JobTokenScope, e v1alpha1.AllowlistEntry) *v1alpha1.Reference {
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

// Allowed returns the project, in any namespace, that an entry of a job token scope lets in, or catalog.ErrNotFound. It does not find a
// project that is being deleted or has no valid place in the tree: other namespaces must not learn the reason. It returns ErrEntryReplaced if
// the entry leads to a project that its author does not know of.
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
	if led := LedTo(j, e); err == nil && led != nil && led.UID != string(p.UID) && p.Namespace != j.Namespace {
		err = ErrEntryReplaced
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return catalog.Scope{}, fmt.Errorf("project %s: %w", catalog.Show(e.ProjectRef), err)
	}
	return s, err
}

// Allows reports whether an entry of a job token scope lets a project in.
func Allows(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, p *v1alpha1.Project) (bool, error) {
	keys := c.ProjectKeys(ctx, p)
	for _, e := range j.Spec.Allowlist {
		if !slices.Contains(keys, catalog.Key(j.Namespace, e.ProjectRef)) {
			continue
		}
		// The key may be that of an older project, too.
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

// AllowedGroup returns the scope of the group, in any namespace, that an entry of a job token scope lets in. It returns the errors
// of catalog.Foreign.
func AllowedGroup(ctx context.Context, c *catalog.Catalog, j *v1alpha1.JobTokenScope, e v1alpha1.GroupAllowlistEntry) (catalog.Scope, error) {
	return c.Foreign(ctx, j.Namespace, e.GroupRef, j.Status.RecordedGroups)
}

// AllowsGroup reports whether an entry of a job token scope lets in one of the groups.
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
		// The key may be that of an older group, too.
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

// lists reports whether an allowlist of a job token scope has a project, or a group above it.
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
