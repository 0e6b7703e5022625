package protection

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
)

const (
	// IndexGrantee holds the keys of the groups and deploy keys to which a protection grants something.
	IndexGrantee = "grantee"
	// IndexBranch holds the keys of the targets of protections, joined with the branch.
	IndexBranch = "branch"
)

// Indexes returns the indexes of protections.
func Indexes() []catalog.Index {
	spec := func(o client.Object) v1alpha1.ProtectedBranchSpec { return o.(*v1alpha1.ProtectedBranch).Spec }
	return []catalog.Index{
		{Of: &v1alpha1.ProtectedBranch{}, Name: IndexBranch, Values: func(o client.Object) []string {
			return keys(catalog.TargetKeys(o), spec(o).Branch)
		}},
		{Of: &v1alpha1.ProtectedBranch{}, Name: catalog.IndexUser, Values: func(o client.Object) (keys []string) {
			for _, l := range levels(spec(o)) {
				if l.UserRef != nil {
					keys = append(keys, catalog.Key("", *l.UserRef))
				}
			}
			return keys
		}},
		{Of: &v1alpha1.ProtectedBranch{}, Name: IndexGrantee, Values: func(o client.Object) (keys []string) {
			for _, l := range levels(spec(o)) {
				keys = append(keys, catalog.RefKeys(o, l.GroupRef)...)
				keys = append(keys, catalog.RefKeys(o, l.DeployKeyRef)...)
			}
			return keys
		}},
	}
}

// levels returns all access levels of a protection.
func levels(spec v1alpha1.ProtectedBranchSpec) []v1alpha1.AccessLevel {
	all := make([]v1alpha1.AccessLevel, 0, len(spec.Push)+len(spec.Merge)+len(spec.Unprotect))
	all = append(all, spec.Push...)
	all = append(all, spec.Merge...)
	return append(all, spec.Unprotect...)
}

// Own returns the protections that are declared for a scope itself and in force there, sorted by branch. If there are two for the same
// branch, a declared one takes precedence over the project's default, and otherwise the one that holds the claim does.
func Own(ctx context.Context, c *catalog.Catalog, s catalog.Scope) ([]*v1alpha1.ProtectedBranch, error) {
	return own(ctx, c, s, func(string) bool { return true })
}

// own returns the protections of Own whose branch name or wildcard is wanted.
func own(ctx context.Context, c *catalog.Catalog, s catalog.Scope, wanted func(name string) bool) ([]*v1alpha1.ProtectedBranch, error) {
	found, err := catalog.ListInScope[*v1alpha1.ProtectedBranch](ctx, c, s)
	if err != nil {
		return nil, err
	}
	holders := map[string]int{}
	var all []*v1alpha1.ProtectedBranch
	for _, b := range found {
		if !wanted(b.Spec.Branch) {
			continue
		}
		i, taken := holders[b.Spec.Branch]
		switch {
		case !taken:
			holders[b.Spec.Branch] = len(all)
			all = append(all, b)
		case precedes(b, all[i], s.Target().GetUID()):
			all[i] = b
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.ProtectedBranch) int { return strings.Compare(a.Spec.Branch, b.Spec.Branch) })
	return all, nil
}

// Holder returns the protection that is in force for one branch name or wildcard in a scope itself, or nil.
func Holder(ctx context.Context, c *catalog.Catalog, s catalog.Scope, branch string) (*v1alpha1.ProtectedBranch, error) {
	found, err := catalog.List[*v1alpha1.ProtectedBranch](ctx, c, IndexBranch, keys(s.Keys(), branch)...)
	if err != nil {
		return nil, err
	}
	var holder *v1alpha1.ProtectedBranch
	for _, b := range found {
		if catalog.Belongs(b, s.Target()) && (holder == nil || precedes(b, holder, s.Target().GetUID())) {
			holder = b
		}
	}
	return holder, nil
}

// Rivals returns a function that returns the keys in IndexBranch for every way to protect the branch of a ProtectedBranch.
func Rivals(c *catalog.Catalog) func(ctx context.Context, obj client.Object) []string {
	return func(ctx context.Context, obj client.Object) []string {
		b := obj.(*v1alpha1.ProtectedBranch)
		target, err := c.Target(ctx, b)
		if err != nil {
			return nil // it protects nothing
		}
		return keys(c.Keys(ctx, target), b.Spec.Branch)
	}
}

// keys returns the keys of the protections of a branch in the targets with the given keys.
func keys(targets []string, branch string) []string {
	keys := make([]string, 0, len(targets))
	for _, t := range targets {
		keys = append(keys, t+"|"+branch)
	}
	return keys
}

// precedes reports whether a takes precedence over b, which protects the same branch of the target.
func precedes(a, b *v1alpha1.ProtectedBranch, target types.UID) bool {
	if IsDefault(a) != IsDefault(b) {
		return IsDefault(b)
	}
	k := Claim(a, target)
	return claim.Precedes(a, k.ShownBy(a), b, k.ShownBy(b))
}

// Claim returns the claim of a protection in its target.
func Claim(b *v1alpha1.ProtectedBranch, target types.UID) claim.Claim {
	if IsDefault(b) {
		return claim.DefaultProtection(target, b.Spec.Branch)
	}
	return claim.Protection(target, b.Spec.Branch)
}

// Claims returns the claims of a protection.
func Claims(ctx context.Context, c *catalog.Catalog, b *v1alpha1.ProtectedBranch) ([]claim.Claim, error) {
	return catalog.ClaimsIn(ctx, c, b, func(target types.UID) claim.Claim { return Claim(b, target) })
}

// IsDefault reports whether a project created the protection for its default branch.
func IsDefault(b *v1alpha1.ProtectedBranch) bool {
	_, ok := b.Labels[v1alpha1.LabelDefaultProtection]
	return ok
}

// All returns every protection that applies to a project or group, its own first, then those of the groups above.
func All(ctx context.Context, c *catalog.Catalog, s catalog.Scope) ([]*v1alpha1.ProtectedBranch, error) {
	return all(ctx, c, s, func(string) bool { return true })
}

func all(ctx context.Context, c *catalog.Catalog, s catalog.Scope, wanted func(name string) bool) ([]*v1alpha1.ProtectedBranch, error) {
	var all []*v1alpha1.ProtectedBranch
	for _, level := range s.Levels() {
		found, err := own(ctx, c, level, wanted)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
