package catalog

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Register returns the register of the claims that this process is taking.
func (c *Catalog) Register() *claim.Register { return &c.register }

// Taken is the result of Take.
type Taken struct {
	// By is the object whose status still shows the claim; nil if there is none.
	By client.Object
	// Busy says that another object is taking the claim at the moment.
	Busy bool
}

// Take writes a claim to the status of an object that is the rightful holder according to the declarations. It may still fail, because the
// status of an object whose spec has just changed can still show the claim. Waiting reports the objects that wait for that.
func (c *Catalog) Take(ctx context.Context, obj v1alpha1.Object, k claim.Claim) (Taken, error) {
	s := obj.GetCommonStatus()
	if k.In(s.Claims) {
		return Taken{}, nil
	}
	if !c.register.Begin(k, obj.GetUID()) {
		return Taken{Busy: true}, nil
	}
	by, err := c.showing(ctx, obj, k)
	if by != nil {
		// It may have been released before this object began to wait.
		c.register.Wait(k, kindOf(obj), client.ObjectKeyFromObject(obj))
		by, err = c.showing(ctx, obj, k)
	}
	if by != nil || err != nil {
		c.register.Cancel(k, obj.GetUID())
		return Taken{By: by}, err
	}
	s.Claims = append(s.Claims[:len(s.Claims):len(s.Claims)], k.String())
	return Taken{}, nil
}

// showing returns another object whose status shows a claim of obj, or nil.
func (c *Catalog) showing(ctx context.Context, obj v1alpha1.Object, k claim.Claim) (by client.Object, err error) {
	lists := []client.ObjectList{obj.NewList()}
	switch obj.(type) {
	case *v1alpha1.Group:
		lists = append(lists, &v1alpha1.ProjectList{})
	case *v1alpha1.Project:
		lists = append(lists, &v1alpha1.GroupList{})
	}
	for _, l := range lists {
		if err := c.reader.List(ctx, l, client.MatchingFields{IndexHeld: k.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking up who holds %s: %w", k, err)
		}
		_ = meta.EachListItem(l, func(r runtime.Object) error {
			if o := r.(client.Object); o.GetUID() != obj.GetUID() {
				by = o
			}
			return nil
		})
	}
	return by, nil
}

// Waiting returns a function that returns, and forgets, the objects of the kind of obj that wait for a claim. The claim is given in
// canonical form.
func (c *Catalog) Waiting(obj client.Object) func(key string) []types.NamespacedName {
	kind := kindOf(obj)
	return func(key string) []types.NamespacedName { return c.register.Released(key, kind) }
}

func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// claims returns the claim of an object that has at most one. It returns none if the object names something that does not exist or does not
// admit it.
func claims(k claim.Claim, err error) ([]claim.Claim, error) {
	switch {
	case Misplaced(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return []claim.Claim{k}, nil
	}
}

// GroupClaims returns the claims that the spec of a group makes.
func GroupClaims(ctx context.Context, c *Catalog, g *v1alpha1.Group) ([]claim.Claim, error) {
	parent, err := c.Parent(ctx, g)
	return claims(claim.Path(place{group: parent}.uid(), g.Spec.Path), err)
}

// ProjectClaims is GroupClaims for a project.
func ProjectClaims(ctx context.Context, c *Catalog, p *v1alpha1.Project) ([]claim.Claim, error) {
	g, err := c.Group(ctx, p.Namespace, p.Spec.GroupRef)
	return claims(claim.Path(place{group: g}.uid(), p.Spec.Path), err)
}

// UserClaims returns the claims of a user.
func UserClaims(_ context.Context, _ *Catalog, u *v1alpha1.User) ([]claim.Claim, error) {
	all := []claim.Claim{claim.Username(u.Spec.Username)}
	if u.Spec.Email != "" {
		all = append(all, claim.Email(u.Spec.Email))
	}
	if k := u.Spec.Kubernetes; k != nil {
		all = append(all, claim.Kubernetes(k.Username))
	}
	return all, nil
}

// MembershipClaims returns the claims of a membership.
func MembershipClaims(ctx context.Context, c *Catalog, m *v1alpha1.Membership) ([]claim.Claim, error) {
	u, err := c.User(ctx, m.Spec.UserRef)
	if err != nil {
		return claims(claim.Claim{}, err)
	}
	return ClaimsIn(ctx, c, m, func(target types.UID) claim.Claim { return claim.Membership(target, u.UID) })
}

// ClaimsIn returns the claims of an object in the project or group that it is declared for, which of computes. It returns none if that
// target does not exist, or if the reference means another one.
func ClaimsIn(ctx context.Context, c *Catalog, obj v1alpha1.Targeted, of func(target types.UID) claim.Claim) ([]claim.Claim, error) {
	target, err := c.Target(ctx, obj)
	if err != nil {
		return claims(claim.Claim{}, err)
	}
	if !Belongs(obj, target) {
		return nil, nil
	}
	return claims(of(target.GetUID()), nil)
}
