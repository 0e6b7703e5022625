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

// Register is what this process is at with claims.
func (c *Catalog) Register() *claim.Register { return &c.register }

// Taken is how Take ended.
type Taken struct {
	// By is the object whose status still shows the claim; nil when there is none.
	By client.Object
	// Busy says that another object is about to take the claim.
	Busy bool
}

// Take puts a claim into the status of an object, which is the holder by what everybody reads. That is not enough to take it: the
// status of an object whose spec has just moved away may still show the claim. Whoever waits for that is told of by Waiting.
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
		// It may have been released before somebody waited.
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

// Waiting returns, and forgets, the objects of the kind of obj that wait for a claim, which is given in canonical form.
func (c *Catalog) Waiting(obj client.Object) func(key string) []types.NamespacedName {
	kind := kindOf(obj)
	return func(key string) []types.NamespacedName { return c.register.Released(key, kind) }
}

func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// claims are those of an object that claims one thing at most; none when what it names is not there, or does not let it in.
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

// GroupClaims returns what a group claims by its spec.
func GroupClaims(ctx context.Context, c *Catalog, g *v1alpha1.Group) ([]claim.Claim, error) {
	parent, err := c.Parent(ctx, g)
	return claims(claim.Path(place{group: parent}.uid(), g.Spec.Path), err)
}

// ProjectClaims is GroupClaims for a project.
func ProjectClaims(ctx context.Context, c *Catalog, p *v1alpha1.Project) ([]claim.Claim, error) {
	g, err := c.Group(ctx, p.Namespace, p.Spec.GroupRef)
	return claims(claim.Path(place{group: g}.uid(), p.Spec.Path), err)
}

// UserClaims returns what a user claims.
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

// MembershipClaims returns what a membership claims.
func MembershipClaims(ctx context.Context, c *Catalog, m *v1alpha1.Membership) ([]claim.Claim, error) {
	u, err := c.User(ctx, m.Spec.UserRef)
	if err != nil {
		return claims(claim.Claim{}, err)
	}
	return ClaimsIn(ctx, c, m, func(target types.UID) claim.Claim { return claim.Membership(target, u.UID) })
}

// ClaimsIn returns what an object claims in the project or group that it is declared for, as of says; nothing where that is not there, or
// was meant of another one.
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
