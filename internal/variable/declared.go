package variable

import (
	"cmp"
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
	// IndexKey holds the key of the target of variables and the key of the variable, joined.
	IndexKey = "variable"
	// indexInstallation holds the namespaces of variables of the installation.
	indexInstallation = "installation"
)

// Indexes returns the indexes of variables.
func Indexes() []catalog.Index {
	return []catalog.Index{
		{Of: &v1alpha1.Variable{}, Name: IndexKey, Values: func(o client.Object) []string {
			v := o.(*v1alpha1.Variable)
			if v.OfInstallation() {
				return []string{keyIn(installation(v.Namespace), v.Spec.Key)}
			}
			return keysIn(catalog.TargetKeys(v), v.Spec.Key)
		}},
		{Of: &v1alpha1.Variable{}, Name: indexInstallation, Values: func(o client.Object) []string {
			if v := o.(*v1alpha1.Variable); v.OfInstallation() {
				return []string{v.Namespace}
			}
			return nil
		}},
	}
}

// installation returns the key of the installation in IndexKey.
func installation(namespace string) string { return "installation:" + namespace }

func keyIn(target, key string) string { return target + "|" + key }

func keysIn(targets []string, key string) []string {
	all := make([]string, len(targets))
	for i, t := range targets {
		all[i] = keyIn(t, key)
	}
	return all
}

// Variables finds the variables of projects, groups and the installation, which is an empty catalog.Scope.
type Variables struct {
	catalog *catalog.Catalog
	// platform is the namespace of the installation's variables.
	platform string
}

// New returns Variables. platform is the platform's namespace.
func New(c *catalog.Catalog, platform string) *Variables { return &Variables{c, platform} }

// Of returns the variables of a project, a group or the installation itself, sorted by key and environment scope. Of variables that exclude
// each other, it returns the one that holds the claim.
func (v *Variables) Of(ctx context.Context, s catalog.Scope) ([]*v1alpha1.Variable, error) {
	found, err := v.declared(ctx, s)
	if err != nil {
		return nil, err
	}
	return holders(s, found), nil
}

func (v *Variables) declared(ctx context.Context, s catalog.Scope) ([]*v1alpha1.Variable, error) {
	if isInstallation(s) {
		return catalog.List[*v1alpha1.Variable](ctx, v.catalog, indexInstallation, v.platform)
	}
	return catalog.ListInScope[*v1alpha1.Variable](ctx, v.catalog, s)
}

// WithKey is Of for the variables with a key.
func (v *Variables) WithKey(ctx context.Context, s catalog.Scope, key string) ([]*v1alpha1.Variable, error) {
	if isInstallation(s) {
		found, err := catalog.List[*v1alpha1.Variable](ctx, v.catalog, IndexKey, keyIn(installation(v.platform), key))
		return holders(s, found), err
	}
	found, err := catalog.List[*v1alpha1.Variable](ctx, v.catalog, IndexKey, keysIn(s.Keys(), key)...)
	found = slices.DeleteFunc(found, func(o *v1alpha1.Variable) bool { return !catalog.Belongs(o, s.Target()) })
	return holders(s, found), err
}

// Holder returns the variable that holds a key with an environment scope, or nil.
func (v *Variables) Holder(ctx context.Context, s catalog.Scope, key, environmentScope string) (*v1alpha1.Variable, error) {
	found, err := v.WithKey(ctx, s, key)
	i := slices.IndexFunc(found, func(o *v1alpha1.Variable) bool { return o.Spec.EnvironmentScope == environmentScope })
	if err != nil || i < 0 {
		return nil, err
	}
	return found[i], nil
}

func isInstallation(s catalog.Scope) bool { return s.Project == nil && len(s.Groups) == 0 }

// holders returns the variables of a scope that hold their claims.
func holders(s catalog.Scope, found []*v1alpha1.Variable) []*v1alpha1.Variable {
	rivals := map[claim.Claim][]*v1alpha1.Variable{}
	for _, o := range found {
		k := ClaimIn(s, o)
		rivals[k] = append(rivals[k], o)
	}
	all := make([]*v1alpha1.Variable, 0, len(rivals))
	for k, claimants := range rivals {
		all = append(all, claim.Holder(claimants, k))
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Variable) int {
		return cmp.Or(strings.Compare(a.Spec.Key, b.Spec.Key), strings.Compare(a.Spec.EnvironmentScope, b.Spec.EnvironmentScope))
	})
	return all
}

// ClaimIn returns the claim of a variable in a scope.
func ClaimIn(s catalog.Scope, o *v1alpha1.Variable) claim.Claim {
	if isInstallation(s) {
		return claimOf("", o)
	}
	return claimOf(s.Target().GetUID(), o)
}

func claimOf(target types.UID, o *v1alpha1.Variable) claim.Claim {
	return claim.Variable(target, o.Spec.Key, o.Spec.EnvironmentScope)
}

// Claims returns the claims of a variable.
func Claims(ctx context.Context, c *catalog.Catalog, o *v1alpha1.Variable) ([]claim.Claim, error) {
	if o.OfInstallation() {
		return []claim.Claim{claimOf("", o)}, nil
	}
	return catalog.ClaimsIn(ctx, c, o, func(target types.UID) claim.Claim { return claimOf(target, o) })
}

// Rivals returns the keys in IndexKey of all variables with the key of obj, a variable, in its project, group or installation.
func Rivals(c *catalog.Catalog) func(ctx context.Context, obj client.Object) []string {
	return func(ctx context.Context, obj client.Object) []string {
		o := obj.(*v1alpha1.Variable)
		if o.OfInstallation() {
			return []string{keyIn(installation(o.Namespace), o.Spec.Key)}
		}
		of, err := c.Target(ctx, o)
		if err != nil {
			return nil // it holds no key
		}
		return keysIn(c.Keys(ctx, of), o.Spec.Key)
	}
}
