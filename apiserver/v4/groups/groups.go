// Package groups is the family of groups, and of the namespaces that they are to projects.
package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/conditional"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/refusal"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Family serves groups.
type Family struct {
	catalog *catalog.Catalog
	guard   *auth.Guard
	writer  *declare.Writer
	clock   clock.PassiveClock
	webURL  string
	// home is the Kubernetes namespace of root groups that are made over REST.
	home string
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=groups,verbs=get;list;watch;create;patch;delete

// New returns the family. webURL is the address of the installation; home is the Kubernetes namespace of the groups that REST
// callers make without a parent.
func New(cat *catalog.Catalog, g *auth.Guard, w *declare.Writer, clk clock.PassiveClock, webURL, home string) *Family {
	return &Family{catalog: cat, guard: g, writer: w, clock: clk, webURL: webURL, home: home}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/groups", f.list).Public().Doc("List the groups that the caller may see."),
		endpoint.Post("/groups", f.create).Doc("Make a group."),
		endpoint.Get("/groups/{id}", f.get).Needs(auth.ReadGroup).Public().Doc("Get a group."),
		endpoint.Put("/groups/{id}", f.update).Needs(auth.AdminGroup).Doc("Change a group."),
		endpoint.Delete("/groups/{id}", f.remove).Needs(auth.AdminGroup).Status(http.StatusAccepted).
			Conditional().Doc("Remove a group."),
		endpoint.Get("/groups/{id}/subgroups", f.subgroups).Needs(auth.ReadGroup).Public().Doc("List the groups right below a group."),
		endpoint.Get("/namespaces", f.namespaces).Doc("List the namespaces in which the caller is a member."),
		endpoint.Get("/namespaces/{namespace}", f.namespace).Doc("Get a namespace by id or full path."),
	}
}

type listRequest struct {
	endpoint.Paging
	Search         string                  `param:"search" doc:"Part of a name or path."`
	Visibility     string                  `param:"visibility" values:"private,internal,public" doc:"Only groups of this visibility."`
	Owned          bool                    `param:"owned" doc:"Only groups that the caller owns."`
	MinAccessLevel endpoint.Optional[int]  `param:"min_access_level" values:"10,20,30,40,50" doc:"Only groups in which the caller has at least this role."`
	AllAvailable   endpoint.Optional[bool] `param:"all_available" doc:"Whether groups count in which the caller, who is signed in, is no member; when omitted they do for administrators."`
	SkipGroups     []int64                 `param:"skip_groups" comma:"" doc:"Ids of groups that are left out."`
	TopLevelOnly   bool                    `param:"top_level_only" doc:"Only root groups."`
	OrderBy        string                  `param:"order_by" values:"name,path,id" default:"name" doc:"What the list is in order of."`
	Sort           string                  `param:"sort" values:"asc,desc" default:"asc" doc:"Whether the order goes up or down."`
	Pagination     string                  `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"keyset pages by position."`
	Cursor         string                  `param:"cursor" doc:"Where the next page of keyset pagination starts."`
}

func (f *Family) list(ctx context.Context, r *listRequest) (endpoint.List[Group], error) {
	return f.listed(ctx, r, func(s catalog.Seen) bool { return !r.TopLevelOnly || len(s.Groups) == 1 })
}

type subgroupsRequest struct {
	listRequest
	ID string `param:"id" doc:"Id or full path of the group."`
}

func (f *Family) subgroups(ctx context.Context, r *subgroupsRequest) (endpoint.List[Group], error) {
	parent := auth.From(ctx).Scope.Groups[0].UID
	return f.listed(ctx, &r.listRequest, func(s catalog.Seen) bool { return len(s.Groups) > 1 && s.Groups[1].UID == parent })
}

// listed returns the page of the groups that the caller sees, that are in and that the request asks for.
func (f *Family) listed(ctx context.Context, r *listRequest, in func(catalog.Seen) bool) (endpoint.List[Group], error) {
	all, err := f.visible(ctx)
	if err != nil {
		return endpoint.List[Group]{}, err
	}
	least, skipped := r.least(auth.From(ctx).Caller), sets.New(r.SkipGroups...)
	search := strings.ToLower(r.Search)
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		g := s.Groups[0]
		return namespace.Personal(g) || !in(s) || s.Highest() < least || skipped.Has(g.Spec.ID) ||
			r.Visibility != "" && namespace.Visibilities[r.Visibility] != catalog.Visibility(g.Spec.Visibility, s.Groups) ||
			!strings.Contains(strings.ToLower(catalog.Title(g.Spec.Name, g.Spec.Path)), search) &&
				!strings.Contains(strings.ToLower(g.Spec.Path), search)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int {
		order := compare(r.OrderBy, a.Groups[0], b.Groups[0])
		if r.Sort == "desc" {
			return -order
		}
		return order
	})
	show := func(s catalog.Seen) Group { return f.show(s.Scope) }
	if r.Pagination != "keyset" {
		return endpoint.Page(r.Paging, all, show), nil
	}
	past, err := r.past()
	if err != nil {
		return endpoint.List[Group]{}, err
	}
	return endpoint.Keyset(r.Paging, all, past, func(s catalog.Seen) string { return positionOf(r.OrderBy, s.Groups[0]).cursor() }, show), nil
}

// least is the role that the caller is to have in the groups.
func (r *listRequest) least(c auth.Caller) role.Role {
	least := role.Role(r.MinAccessLevel.Or(0))
	switch {
	case r.Owned:
		return role.Owner
	case !c.Anonymous() && !r.AllAvailable.Or(c.Admin):
		return max(least, role.Guest)
	default:
		return least
	}
}

// visible returns the groups that the caller sees.
func (f *Family) visible(ctx context.Context) ([]catalog.Seen, error) {
	caller := auth.From(ctx).Caller
	all, err := f.catalog.Tree(caller.User, f.clock.Now()).Groups(ctx)
	if err != nil {
		return nil, err
	}
	// One that has no id yet is not known to the API.
	return slices.DeleteFunc(all, func(s catalog.Seen) bool { return s.Groups[0].Spec.ID == 0 || !auth.AccessOf(caller, s).Sees() }), nil
}

func compare(by string, a, b *v1alpha1.Group) int {
	return positionOf(by, a).compare(positionOf(by, b))
}

type idRequest struct {
	ID string `param:"id" doc:"Id or full path of the group."`
}

func (f *Family) get(ctx context.Context, _ *idRequest) (Group, error) {
	return f.show(auth.From(ctx).Scope), nil
}

type createRequest struct {
	Name        string                   `param:"name" required:"" blank:"refuse" doc:"What people call the group."`
	Path        string                   `param:"path" required:"" blank:"refuse" doc:"Its segment of the full path."`
	Description string                   `param:"description" doc:"What it is for."`
	Visibility  string                   `param:"visibility" values:"private,internal,public" default:"private" doc:"Who may see it."`
	ParentID    endpoint.Optional[int64] `param:"parent_id" doc:"Id of the group above."`
}

func (f *Family) create(ctx context.Context, r *createRequest) (Group, error) {
	caller := auth.From(ctx).Caller
	g := &v1alpha1.Group{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.home},
		Spec: v1alpha1.GroupSpec{
			Path: r.Path, Name: r.Name, Description: r.Description, Visibility: namespace.Visibilities[r.Visibility],
		},
	}
	key := []string{strings.ToLower(r.Path)}
	var above []*v1alpha1.Group
	if r.ParentID.Set && !r.ParentID.Null {
		parent, err := f.guard.Locate(ctx, caller, auth.CreateSubgroups, r.ParentID.Value)
		if err != nil {
			return Group{}, err
		}
		above = parent.Groups
		g.Namespace, key = above[0].Namespace, slices.Insert(key, 0, above[0].Name)
		g.Spec.ParentRef = &v1alpha1.Reference{Name: above[0].Name}
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
		return strings.EqualFold(holder.Spec.Path, r.Path) && ptr.Equal(holder.Spec.ParentRef, g.Spec.ParentRef)
	}
	err := declare.CreateUnique(ctx, f.writer, g, same, key...)
	if errors.Is(err, declare.ErrExists) {
		return Group{}, taken()
	}
	if err != nil {
		return Group{}, refusal.Of(err, "Group")
	}
	if caller.User != nil {
		if err := f.own(ctx, caller.User, g); err != nil {
			return Group{}, err
		}
	}
	chain, err := f.catalog.Ancestors(ctx, g)
	if err != nil {
		return Group{}, err
	}
	return f.show(catalog.Scope{Groups: chain}), nil
}

// own makes whoever has made a group its owner; a group that he cannot own does not stay.
func (f *Family) own(ctx context.Context, u *v1alpha1.User, g *v1alpha1.Group) error {
	err := f.writer.Create(ctx, namespace.Owner(u, g))
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("making %s the owner of group %s: %w", u.Name, g.Spec.Path, err), f.writer.Discard(ctx, g))
}

// maxDescription is how many characters a description may have.
const maxDescription = 500

// check says what is wrong with a group that is to be declared; was is what it was before, empty for a new one.
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

// free refuses a path that something below the groups above has, and at the root one that is a username: there a user has the
// group of his personal projects, or will have it.
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
	ID          string                    `param:"id" doc:"Id or full path of the group."`
	Name        endpoint.Optional[string] `param:"name" blank:"refuse" doc:"What people call the group."`
	Path        endpoint.Optional[string] `param:"path" blank:"refuse" doc:"Its segment of the full path."`
	Description endpoint.Optional[string] `param:"description" doc:"What it is for."`
	Visibility  endpoint.Optional[string] `param:"visibility" values:"private,internal,public" doc:"Who may see it."`
}

func (f *Family) update(ctx context.Context, r *updateRequest) (Group, error) {
	scope := auth.From(ctx).Scope
	g := scope.Groups[0].DeepCopy()
	if path := r.Path.Or(g.Spec.Path); path != g.Spec.Path {
		if err := f.free(ctx, scope.Groups[1:], path); err != nil {
			return Group{}, err
		}
	}
	err := f.writer.Update(ctx, g, func() error {
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
		return Group{}, refusal.Of(err, "Group")
	}
	chain, err := f.catalog.Ancestors(ctx, g)
	return f.show(catalog.Scope{Groups: chain}), err
}

// Accepted is the answer to what goes on after it.
type Accepted struct {
	Message string `json:"message"`
}

// remove takes away a group with all that is below it, unless a project below is not for REST callers to remove.
func (f *Family) remove(ctx context.Context, _ *idRequest) (Accepted, error) {
	g := auth.From(ctx).Scope.Groups[0]
	if err := conditional.Check(ctx, f.writer, g); err != nil {
		return Accepted{}, refusal.Of(err, "Group")
	}
	projects, groups, err := f.below(ctx, g)
	if err != nil {
		return Accepted{}, err
	}
	if err := f.allow(ctx, projects); err != nil {
		return Accepted{}, err
	}
	var doomed []client.Object
	for _, s := range projects {
		doomed = append(doomed, s.Project.DeepCopy())
	}
	for _, s := range groups {
		doomed = append(doomed, s.Groups[0].DeepCopy())
	}
	for _, obj := range doomed {
		if err := f.writer.Delete(ctx, obj); err != nil && !errors.Is(err, declare.ErrGone) {
			return Accepted{}, err
		}
	}
	return Accepted{Message: "202 Accepted"}, nil
}

// allow refuses the whole when any of the projects is not for REST callers to remove, and names it.
func (f *Family) allow(ctx context.Context, projects []catalog.Seen) error {
	for _, s := range projects {
		err := f.writer.Allow(ctx, s.Project, s.Project)
		var refused *declare.RefusedError
		if errors.As(err, &refused) {
			return endpoint.Forbidden(s.Path() + ": " + refused.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below returns the projects below a group, and the groups with itself. The deepest groups go first, so that nothing is left
// that nobody can reach when they are removed in this order.
func (f *Family) below(ctx context.Context, g *v1alpha1.Group) (projects, groups []catalog.Seen, err error) {
	tree := f.catalog.Tree(nil, f.clock.Now())
	if projects, err = tree.Projects(ctx); err != nil {
		return nil, nil, err
	}
	if groups, err = tree.Groups(ctx); err != nil {
		return nil, nil, err
	}
	elsewhere := func(s catalog.Seen) bool {
		return !slices.ContainsFunc(s.Groups, func(a *v1alpha1.Group) bool { return a.UID == g.UID })
	}
	projects, groups = slices.DeleteFunc(projects, elsewhere), slices.DeleteFunc(groups, elsewhere)
	slices.SortFunc(groups, func(a, b catalog.Seen) int { return cmp.Compare(len(b.Groups), len(a.Groups)) })
	return projects, groups, nil
}

type namespacesRequest struct {
	endpoint.Paging
	Search       string `param:"search" doc:"Part of a name or path."`
	OwnedOnly    bool   `param:"owned_only" doc:"Only namespaces that the caller owns."`
	TopLevelOnly bool   `param:"top_level_only" doc:"Only those of root groups and of users."`
}

func (f *Family) namespaces(ctx context.Context, r *namespacesRequest) (endpoint.List[namespace.Namespace], error) {
	caller := auth.From(ctx).Caller
	all, err := f.visible(ctx)
	if err != nil {
		return endpoint.List[namespace.Namespace]{}, err
	}
	least := role.Guest
	switch {
	case r.OwnedOnly:
		least = role.Owner
	case caller.Admin:
		least = role.None
	}
	search := strings.ToLower(r.Search)
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		return s.Highest() < least || r.TopLevelOnly && len(s.Groups) > 1 ||
			!strings.Contains(strings.ToLower(catalog.FullPath(s.Groups)), search)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int { return compare("id", a.Groups[0], b.Groups[0]) })
	return endpoint.Page(r.Paging, all, func(s catalog.Seen) namespace.Namespace { return namespace.Show(s.Groups, f.webURL) }), nil
}

type namespaceRequest struct {
	Namespace string `param:"namespace" doc:"Id or full path."`
}

func (f *Family) namespace(ctx context.Context, r *namespaceRequest) (namespace.Namespace, error) {
	caller := auth.From(ctx).Caller
	scope, err := f.guard.Group(ctx, r.Namespace)
	if errors.Is(err, catalog.ErrNotFound) {
		return namespace.Namespace{}, endpoint.NotFound("Namespace")
	}
	if err != nil {
		return namespace.Namespace{}, err
	}
	access, err := f.guard.Access(ctx, caller, scope)
	if err == nil && !access.Sees() {
		err = endpoint.NotFound("Namespace")
	}
	return namespace.Show(scope.Groups, f.webURL), err
}
