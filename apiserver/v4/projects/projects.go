// Package projects is the family of projects.
package projects

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// Family serves projects.
type Family struct {
	catalog  *catalog.Catalog
	guard    *auth.Guard
	projects *store.Store[store.Only, *v1alpha1.Project]
	groups   *store.Store[store.Only, *v1alpha1.Group]
	refs     *ref.Writer
	clock    clock.PassiveClock
	webURL   string
	// home is the Kubernetes namespace of personal projects.
	home string
	// lists are what was found for lists.
	lists *catalog.Memory[question, []catalog.Seen]
}

// maxLists is how many lists are remembered, each of which may have all projects.
const maxLists = 64

// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// New returns the family. webURL is the address of the installation; home is the Kubernetes namespace of the personal projects
// of all users.
func New(cat *catalog.Catalog, g *auth.Guard, w store.Writer, refs *ref.Writer, clk clock.PassiveClock, webURL, home string) *Family {
	return &Family{
		catalog: cat, guard: g, projects: store.Projects(w), groups: store.Groups(w), refs: refs, clock: clk, webURL: webURL, home: home,
		lists: catalog.NewMemory[question, []catalog.Seen](
			cat, maxLists, &v1alpha1.Project{}, &v1alpha1.Group{}, &v1alpha1.Membership{}, &v1alpha1.User{}, &corev1.Namespace{}),
	}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects", f.list).Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).Asks(auth.AdminProject).
			Doc("List the projects that the caller may see."),
		endpoint.Post("/projects", f.create).Anybody().Asks(auth.CreateProjects).Doc("Make a project."),
		endpoint.Get("/projects/{id}", f.get).Needs(auth.ReadProject).Asks(auth.AdminProject).Anonymous(endpoint.Served).Doc("Get a project."),
		endpoint.Put("/projects/{id}", f.update).Needs(auth.AdminProject).Asks(auth.OwnProject).Doc("Change a project."),
		endpoint.Delete("/projects/{id}", f.remove).Needs(auth.OwnProject).Status(http.StatusAccepted).
			Conditional().Doc("Remove a project."),
		endpoint.Post("/projects/{id}/archive", f.archive).Needs(auth.OwnProject).Asks(auth.AdminProject).Doc("Refuse every push from now on."),
		endpoint.Post("/projects/{id}/unarchive", f.unarchive).Needs(auth.OwnProject).Asks(auth.AdminProject).Doc("Take pushes again."),
		endpoint.Get("/groups/{id}/projects", f.inGroup).Needs(auth.ReadGroup).Asks(auth.AdminProject).
			Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).
			Doc("List the projects of a group."),
	}
}

func (f *Family) get(ctx context.Context, s auth.Project, _ *endpoint.None) (Project, error) {
	return f.show(ctx, s.Scope, viewed(s.Subject, s.Access))
}

// viewed returns what the caller of a request may see of a project to which they have access.
func viewed(s auth.Subject, a auth.Access) viewer {
	if s.Caller.Anonymous() {
		return viewer{}
	}
	return viewer{roles: &a.Roles, settings: s.Has(a, auth.AdminProject), admin: a.Admin}
}

type createRequest struct {
	Name              string                   `param:"name" doc:"Display name of the project; the path when omitted."`
	Path              string                   `param:"path" doc:"Its segment of the full path; made from the name when omitted."`
	NamespaceID       endpoint.Optional[int64] `param:"namespace_id" doc:"Id of the group; the caller's own namespace when omitted."`
	Description       string                   `param:"description" doc:"Purpose of the project."`
	Visibility        string                   `param:"visibility" values:"private,internal,public" default:"private" doc:"Users who can see the project."`
	DefaultBranch     string                   `param:"default_branch" doc:"The branch that HEAD names."`
	ImportURL         string                   `param:"import_url" doc:"A repository to begin with."`
	RepositoryAccess  string                   `param:"repository_access_level" values:"enabled,private,disabled" default:"enabled" doc:"For whom the code is."`
	ContainerRegistry string                   `param:"container_registry_access_level" values:"enabled,private,disabled" default:"enabled" doc:"For whom the images are."`
}

func (f *Family) create(ctx context.Context, s auth.Instance, r *createRequest) (Project, error) {
	caller := s.Caller
	if r.Name == "" && r.Path == "" {
		return Project{}, endpoint.Parameters("name, path are missing, at least one parameter must be provided")
	}
	path := r.Path
	if path == "" {
		path = slug(r.Name)
	}
	spec := v1alpha1.ProjectSpec{
		Path: path, Name: r.Name, Description: r.Description,
		Visibility: namespace.Visibilities[r.Visibility], DefaultBranch: r.DefaultBranch, ImportURL: r.ImportURL,
		Features: v1alpha1.Features{Repository: features[r.RepositoryAccess], ContainerRegistry: features[r.ContainerRegistry]},
		// Clients expect of a project that they make and remove that it is new, and that nothing is left of it.
		AdoptRepository: v1alpha1.AdoptNone, DeletionPolicy: v1alpha1.DeletionPolicyDelete,
	}
	scope, err := f.holder(ctx, s.Subject, r.NamespaceID, func() error { return check(spec, v1alpha1.ProjectSpec{}) })
	if err != nil {
		return Project{}, err
	}
	if _, err := f.catalog.ByPath(ctx, catalog.FullPath(scope.Groups, path)); err == nil {
		return Project{}, taken()
	} else if !errors.Is(err, catalog.ErrNotFound) {
		return Project{}, err
	}
	group := scope.Groups[0]
	spec.GroupRef = catalog.ReferNamed(group)
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Labels: caller.Creator()}, Spec: spec}
	same := func(holder *v1alpha1.Project) bool {
		return strings.EqualFold(holder.Spec.Path, path) && catalog.Names(holder.Spec.GroupRef, group)
	}
	err = f.projects.CreateUnique(ctx, s.Subject, p, same, []string{group.Name, strings.ToLower(path)})
	if errors.Is(err, store.ErrExists) {
		return Project{}, taken()
	}
	if err != nil {
		return Project{}, err
	}
	scope.Project = p
	return f.show(ctx, scope, viewer{settings: true, admin: caller.Admin})
}

// holder returns the group that a project is made in: the one that is asked for, or the caller's own namespace. That one is made
// when the project is good, and not before.
func (f *Family) holder(ctx context.Context, s auth.Subject, id endpoint.Optional[int64], good func() error) (catalog.Scope, error) {
	if id.Set && !id.Null {
		scope, err := f.guard.Locate(ctx, s, auth.CreateProjects, id.Value)
		if err != nil {
			return catalog.Scope{}, err
		}
		return scope, good()
	}
	u, err := s.Caller.Person()
	if err != nil {
		return catalog.Scope{}, err
	}
	if err := good(); err != nil {
		return catalog.Scope{}, err
	}
	g, err := f.personal(ctx, u)
	return catalog.Scope{Groups: []*v1alpha1.Group{g}}, err
}

// personal returns the group of a user's own projects, and creates it if necessary. It creates nothing if the group could not hold its
// path.
func (f *Family) personal(ctx context.Context, u *v1alpha1.User) (*v1alpha1.Group, error) {
	g := namespace.PersonalOf(u, f.home)
	if namespace.Reserved(g.Spec.Path) {
		return nil, endpoint.Invalid(map[string][]string{"namespace": {"is not available: the username " + namespace.ReservedName}})
	}
	holder, err := f.catalog.ByPath(ctx, g.Spec.Path)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && f.catalog.MayHoldRootGroup(f.home, g.Spec.Path):
	case errors.Is(err, catalog.ErrNotFound):
		return nil, unavailable()
	case err != nil:
		return nil, err
	default:
		if err := f.own(ctx, holder, u); err != nil {
			return nil, err
		}
	}
	err = f.groups.EnsureUnasked(ctx, g, func(ctx context.Context, w store.Unasked) error {
		// It may have existed with a path other than the username.
		if err := f.own(ctx, g, u); err != nil {
			return err
		}
		return w.Ensure(ctx, owner.Membership(u, g))
	})
	if err != nil {
		return nil, err
	}
	// Somebody else may have been faster.
	if holder, err = f.catalog.ByPath(ctx, g.Spec.Path); err != nil || holder.GetUID() != g.UID {
		return nil, unavailable()
	}
	return g, nil
}

// own refuses a group that does not hold the personal projects of a user.
func (f *Family) own(ctx context.Context, o metav1.Object, u *v1alpha1.User) error {
	own, err := namespace.IsPersonal(ctx, f.catalog, o, u, f.home)
	if err == nil && !own {
		err = unavailable()
	}
	return err
}

func unavailable() error {
	return endpoint.Invalid(map[string][]string{"namespace": {"is not available: another group holds the path"}})
}

var notInPath = regexp.MustCompile(`[^a-zA-Z0-9_.]+`)

// slug makes a path from a name.
func slug(name string) string {
	return strings.Trim(notInPath.ReplaceAllString(strings.ToLower(name), "-"), "-.")
}

func taken() error {
	return endpoint.Invalid(map[string][]string{"name": {"has already been taken"}, "path": {"has already been taken"}})
}

type updateRequest struct {
	Name              endpoint.Optional[string] `param:"name" blank:"refuse" doc:"Display name of the project."`
	Path              endpoint.Optional[string] `param:"path" blank:"refuse" doc:"Its segment of the full path."`
	Description       endpoint.Optional[string] `param:"description" doc:"Purpose of the project."`
	Visibility        endpoint.Optional[string] `param:"visibility" values:"private,internal,public" doc:"Users who can see the project; only owners can change it."`
	DefaultBranch     endpoint.Optional[string] `param:"default_branch" blank:"refuse" doc:"The branch that HEAD names."`
	RepositoryAccess  endpoint.Optional[string] `param:"repository_access_level" values:"enabled,private,disabled" doc:"For whom the code is."`
	ContainerRegistry endpoint.Optional[string] `param:"container_registry_access_level" values:"enabled,private,disabled" doc:"For whom the images are."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Project, error) {
	scope := s.Scope
	if path := r.Path.Or(scope.Project.Spec.Path); path != scope.Project.Spec.Path {
		if _, err := f.catalog.ByPath(ctx, catalog.FullPath(scope.Groups, path)); err == nil {
			return Project{}, taken()
		}
	}
	return f.change(ctx, s, func(spec *v1alpha1.ProjectSpec) error {
		spec.Name = r.Name.Or(spec.Name)
		spec.Path = r.Path.Or(spec.Path)
		if r.Description.Set {
			spec.Description = r.Description.Value // null clears it
		}
		spec.DefaultBranch = r.DefaultBranch.Or(spec.DefaultBranch)
		if v, ok := namespace.Visibilities[r.Visibility.Value]; ok && v != spec.Visibility {
			if !s.Has(s.Access, auth.OwnProject) {
				return endpoint.Forbidden("")
			}
			spec.Visibility = v
		}
		if a, ok := features[r.RepositoryAccess.Value]; ok {
			spec.Features.Repository = a
		}
		if a, ok := features[r.ContainerRegistry.Value]; ok {
			spec.Features.ContainerRegistry = a
		}
		return nil
	})
}

// change writes what mutate does to the spec of the request's project.
func (f *Family) change(ctx context.Context, s auth.Project, mutate func(*v1alpha1.ProjectSpec) error) (Project, error) {
	p, err := f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) error {
		was := p.Spec
		if err := mutate(&p.Spec); err != nil {
			return err
		}
		return check(p.Spec, was)
	})
	if err != nil {
		return Project{}, err
	}
	if branch := p.Spec.DefaultBranch; branch != "" && branch != s.Scope.Project.Spec.DefaultBranch {
		if err := f.refs.SetHead(ctx, p); err != nil {
			return Project{}, err
		}
	}
	return f.show(ctx, catalog.Scope{Project: p, Groups: s.Scope.Groups}, viewed(s.Subject, s.Access))
}

func (f *Family) archive(ctx context.Context, s auth.Project, _ *endpoint.None) (Project, error) {
	return f.setArchived(ctx, s, true)
}

func (f *Family) unarchive(ctx context.Context, s auth.Project, _ *endpoint.None) (Project, error) {
	return f.setArchived(ctx, s, false)
}

func (f *Family) setArchived(ctx context.Context, s auth.Project, archived bool) (Project, error) {
	return f.change(ctx, s, func(spec *v1alpha1.ProjectSpec) error {
		spec.Archived = archived
		return nil
	})
}

// Accepted is the answer to what goes on after it.
type Accepted struct {
	Message string `json:"message"`
}

func (f *Family) remove(ctx context.Context, s auth.Project, _ *endpoint.None) (Accepted, error) {
	if err := f.projects.Delete(ctx, s.Subject, store.Only{}); err != nil {
		return Accepted{}, err
	}
	return Accepted{Message: "202 Accepted"}, nil
}
