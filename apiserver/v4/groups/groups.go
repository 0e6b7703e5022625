// Package groups is the family of groups, which are also the namespaces of projects.
package groups

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// Family serves groups.
type Family struct {
	catalog *catalog.Catalog
	guard   *auth.Guard
	groups  *store.Store[store.Only, *v1alpha1.Group]
	tree    *store.Tree
	clock   clock.PassiveClock
	webURL  string
	// home is the Kubernetes namespace of root groups that are created over REST.
	home string
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// New returns the family. webURL is the address of the installation; home is the Kubernetes namespace of the groups that REST
// callers make without a parent.
func New(cat *catalog.Catalog, g *auth.Guard, w store.Writer, clk clock.PassiveClock, webURL, home string) *Family {
	return &Family{catalog: cat, guard: g, groups: store.Groups(w), tree: store.NewTree(w), clock: clk, webURL: webURL, home: home}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/groups", f.list).Anonymous(endpoint.Served).Doc("List the groups that the caller may see."),
		endpoint.Post("/groups", f.create).Anybody().Asks(auth.CreateSubgroups).Doc("Make a group."),
		endpoint.Get("/groups/{id}", f.get).Needs(auth.ReadGroup).Anonymous(endpoint.Served).Doc("Get a group."),
		endpoint.Put("/groups/{id}", f.update).Needs(auth.AdminGroup).Doc("Change a group."),
		endpoint.Delete("/groups/{id}", f.remove).Needs(auth.AdminGroup).Status(http.StatusAccepted).
			Conditional().Doc("Remove a group."),
		endpoint.Get("/groups/{id}/subgroups", f.subgroups).Needs(auth.ReadGroup).Anonymous(endpoint.Served).Doc("List the direct subgroups of a group."),
		endpoint.Get("/namespaces", f.namespaces).Doc("List the namespaces in which the caller is a member."),
		endpoint.Get("/namespaces/{namespace}", f.namespace).Asks(auth.ReadGroup).Doc("Get a namespace by id or full path."),
	}
}

func (f *Family) get(_ context.Context, s auth.Group, _ *endpoint.None) (Group, error) {
	return f.show(s.Scope), nil
}

type createRequest struct {
	Name        string                   `param:"name" required:"" blank:"refuse" doc:"Display name of the group."`
	Path        string                   `param:"path" required:"" blank:"refuse" doc:"Its segment of the full path."`
	Description string                   `param:"description" doc:"Purpose of the group."`
	Visibility  string                   `param:"visibility" values:"private,internal,public" default:"private" doc:"Users who can see the group."`
	ParentID    endpoint.Optional[int64] `param:"parent_id" doc:"Id of the group above."`
}

func (f *Family) create(ctx context.Context, s auth.Instance, r *createRequest) (Group, error) {
	caller := s.Caller
	g := &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.home, Labels: caller.Creator()},
		Spec: v1alpha1.GroupSpec{
			Path: r.Path, Name: r.Name, Description: r.Description, Visibility: namespace.Visibilities[r.Visibility],
		},
	}
	key := []string{strings.ToLower(r.Path)}
	var above []*v1alpha1.Group
	if r.ParentID.Set && !r.ParentID.Null {
		parent, err := f.guard.Locate(ctx, s.Subject, auth.CreateSubgroups, r.ParentID.Value)
		if err != nil {
			return Group{}, err
		}
		above = parent.Groups
		g.Namespace, key = above[0].Namespace, slices.Insert(key, 0, above[0].Name)
		g.Spec.ParentRef = ptr.To(catalog.ReferNamed(above[0]))
	} else if !f.catalog.MayHoldRootGroup(f.home, r.Path) {
		return Group{}, endpoint.Forbidden("")
	}
	if err := check(g.Spec, v1alpha1.GroupSpec{}); err != nil {
		return Group{}, err
	}
	if err := f.free(ctx, above, r.Path); err != nil {
		return Group{}, err
	}
	same := func(holder *v1alpha1.Group) bool {
		ref, root := holder.Spec.ParentRef, len(above) == 0
		return strings.EqualFold(holder.Spec.Path, r.Path) && root == (ref == nil) && (root || catalog.Names(*ref, above[0]))
	}
	err := f.groups.CreateUnique(ctx, s.Subject, g, same, key, owned(g, caller.User)...)
	if errors.Is(err, store.ErrExists) {
		return Group{}, taken()
	}
	if err != nil {
		return Group{}, err
	}
	chain, err := f.catalog.Ancestors(ctx, g)
	if err != nil {
		return Group{}, err
	}
	return f.show(catalog.Scope{Groups: chain}), nil
}

// owned makes a user, unless it is nobody, the owner of a group that is about to be made, and goes with that: where it fails, there is no
// group. If the server ends before that, the controller of groups makes the owner.
func owned(g *v1alpha1.Group, by *v1alpha1.User) []store.Then {
	if by == nil {
		return nil
	}
	owner.Expect(g, by)
	return []store.Then{func(ctx context.Context, w store.Unasked) error {
		if err := w.Ensure(ctx, owner.Membership(by, g)); err != nil {
			return fmt.Errorf("making %s the owner of group %s: %w", by.Name, g.Spec.Path, err)
		}
		return w.Update(ctx, g, func() error {
			owner.Settle(g)
			return nil
		})
	}}
}

// maxDescription is how many characters a description may have.
const maxDescription = 500

// check returns the problems of a group before it is declared. was is its previous spec, empty for a new group.
func check(is, was v1alpha1.GroupSpec) error {
	var a namespace.Attributes
	if is.ParentRef == nil && is.Path != was.Path {
		a.RootPath(is.Path)
	} else {
		a.Path(is.Path)
	}
	if is.Name != was.Name {
		a.Name(is.Name)
	}
	a.Text("description", is.Description, maxDescription)
	return a.Err()
}

// free refuses a path that a sibling already has, and for a root group also a username, because it is reserved for the user's personal
// projects.
func (f *Family) free(ctx context.Context, above []*v1alpha1.Group, path string) error {
	_, err := f.catalog.ByPath(ctx, catalog.FullPath(above, path))
	if len(above) == 0 && errors.Is(err, catalog.ErrNotFound) {
		_, err = f.catalog.UserByUsername(ctx, path)
	}
	switch {
	case err == nil:
		return taken()
	case errors.Is(err, catalog.ErrNotFound):
		return nil
	default:
		return err
	}
}

func taken() error { return endpoint.Invalid(map[string][]string{"path": {"has already been taken"}}) }

type updateRequest struct {
	Name        endpoint.Optional[string] `param:"name" blank:"refuse" doc:"Display name of the group."`
	Path        endpoint.Optional[string] `param:"path" blank:"refuse" doc:"Its segment of the full path."`
	Description endpoint.Optional[string] `param:"description" doc:"Purpose of the group."`
	Visibility  endpoint.Optional[string] `param:"visibility" values:"private,internal,public" doc:"Users who can see the group."`
}

func (f *Family) update(ctx context.Context, s auth.Group, r *updateRequest) (Group, error) {
	scope := s.Scope
	if path := r.Path.Or(scope.Groups[0].Spec.Path); path != scope.Groups[0].Spec.Path {
		if err := f.free(ctx, scope.Groups[1:], path); err != nil {
			return Group{}, err
		}
	}
	g, err := f.groups.Update(ctx, s.Subject, store.Only{}, func(g *v1alpha1.Group) error {
		was := g.Spec
		g.Spec.Name = r.Name.Or(g.Spec.Name)
		g.Spec.Path = r.Path.Or(g.Spec.Path)
		if r.Description.Set {
			g.Spec.Description = r.Description.Value // null clears it
		}
		if v, ok := namespace.Visibilities[r.Visibility.Value]; ok {
			g.Spec.Visibility = v
		}
		return check(g.Spec, was)
	})
	if err != nil {
		return Group{}, err
	}
	chain, err := f.catalog.Ancestors(ctx, g)
	return f.show(catalog.Scope{Groups: chain}), err
}
