// Package projects is the family of projects.
package projects

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/avatar"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/owner"
)

// Family serves projects.
type Family struct {
	family.Kit
	projects *store.Store[store.Only, *v1alpha1.Project]
	groups   *store.Store[store.Only, *v1alpha1.Group]
	sharing  *sharing.Sharing
}

// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects,verbs=get;create;patch;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=projects/status,verbs=patch,roleName=forgeplane-apiserver

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{
		Kit: k, projects: store.Projects(k.Writer), groups: store.Groups(k.Writer), sharing: sharing.New(k.Catalog, k.Guard, k.Clock),
	}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return append(endpoint.Table{
		endpoint.Get("/projects", f.list).Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).Asks(auth.AdminProject, auth.ReadStatistics).
			Doc("List the projects that the caller can see."),
		avatar.Taking(endpoint.Post("/projects", f.create).Anybody().Asks(auth.CreateProjects).Doc("Create a project.")),
		endpoint.Get("/projects/{id}", f.get).Needs(auth.ReadProject).Asks(auth.AdminProject, auth.ReadStatistics).Anonymous(endpoint.Served).Doc("Get a project."),
		avatar.Taking(endpoint.Put("/projects/{id}", f.update).Needs(auth.AdminProject).Asks(auth.OwnProject).Nonempty().
			Doc("Update a project.")),
		endpoint.Get("/projects/{id}/avatar", f.avatar).Needs(auth.ReadProject).Anonymous(endpoint.Served).Doc("Get the avatar of a project, as a PNG."),
		endpoint.Delete("/projects/{id}", f.remove).Needs(auth.OwnProject).Status(http.StatusAccepted).
			Conditional().Doc("Delete a project."),
		endpoint.Post("/projects/{id}/archive", f.archive).Needs(auth.OwnProject).Asks(auth.AdminProject).Doc("Archive a project. Pushes are refused."),
		endpoint.Post("/projects/{id}/unarchive", f.unarchive).Needs(auth.OwnProject).Asks(auth.AdminProject).Doc("Unarchive a project."),
		endpoint.Post("/projects/{id}/share", f.share).Needs(auth.WriteProjectMembers).Asks(auth.ReadGroup).
			Doc("Share a project with the members of a group."),
		endpoint.Delete("/projects/{id}/share/{group_id}", f.unshare).Needs(auth.WriteProjectMembers).Asks(auth.ReadGroup).
			Doc("Stop sharing a project with a group."),
		endpoint.Put("/projects/{id}/transfer", f.transfer).Needs(auth.OwnProject).Asks(auth.AdminProject, auth.CreateProjects).
			Doc("Move a project to another group or user."),
		endpoint.Get("/projects/{id}/transfer_locations", f.locations).Needs(auth.OwnProject).Asks(auth.CreateProjects).
			Doc("List the groups to which the caller can move a project."),
		endpoint.Get("/groups/{id}/projects", f.inGroup).Needs(auth.ReadGroup).Asks(auth.AdminProject, auth.ReadStatistics).
			Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).
			Doc("List the projects of a group."),
		endpoint.Get("/users/{user_id}/projects", f.ofUser).Asks(auth.AdminProject, auth.ReadStatistics).
			Anonymous(endpoint.Served).Also(http.StatusMethodNotAllowed).
			Doc("List the personal projects of a user."),
	}, f.forkTable()...)
}

type getRequest struct {
	Statistics bool `param:"statistics" doc:"Whether to show the sizes, if the caller is at least a Reporter."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *getRequest) (Project, error) {
	to := viewed(s.Subject, s.Access).counting(r.Statistics)
	if to.statistics && f.Images != nil {
		if err := f.Images.Measure(ctx, s.Scope.Project.UID); err != nil {
			return Project{}, err
		}
	}
	return f.show(ctx, s.Scope, to)
}

// viewed returns the viewer of a project for the caller.
func viewed(s auth.Subject, a auth.Access) viewer {
	if s.Caller.Anonymous() {
		return viewer{caller: s.Caller}
	}
	return viewer{
		caller: s.Caller, roles: &a.Roles, settings: s.Has(a, auth.AdminProject), counts: s.Has(a, auth.ReadStatistics), admin: a.Admin,
	}
}

// counting returns the viewer with or without statistics, as requested.
func (v viewer) counting(wanted bool) viewer {
	v.statistics = wanted && v.counts
	return v
}

type createRequest struct {
	Name              string                   `param:"name" example:"Web site" doc:"Display name of the project; the path when omitted."`
	Path              string                   `param:"path" doc:"Its segment of the full path; derived from the name when omitted."`
	NamespaceID       endpoint.Optional[int64] `param:"namespace_id" doc:"Id of the group; the caller's own namespace when omitted."`
	Description       string                   `param:"description" doc:"Purpose of the project."`
	Visibility        string                   `param:"visibility" values:"private,internal,public" default:"private" doc:"Users who can see the project."`
	DefaultBranch     string                   `param:"default_branch" doc:"The default branch."`
	ImportURL         string                   `param:"import_url" doc:"URL of a repository to import."`
	RepositoryAccess  string                   `param:"repository_access_level" values:"enabled,private,disabled" default:"enabled" doc:"Access to the repository."`
	ContainerRegistry string                   `param:"container_registry_access_level" values:"enabled,private,disabled" default:"enabled" doc:"Access to the container registry."`
	SquashOption      string                   `param:"squash_option" values:"never,always,default_on,default_off" default:"default_off" doc:"Whether merges squash commits."`
	RequirePipeline   bool                     `param:"only_allow_merge_if_pipeline_succeeds" default:"false" doc:"Whether merge requests can be merged only if their last pipelines have succeeded."`
	AllowSkipped      bool                     `param:"allow_merge_on_skipped_pipeline" default:"false" doc:"Whether a skipped pipeline counts as successful for merges."`
	PublicJobs        bool                     `param:"public_jobs" default:"true" doc:"Whether everybody who can see the code can see pipelines, logs and artifacts; otherwise only Reporters."`
	KeepLatest        bool                     `param:"keep_latest_artifact" default:"true" doc:"Whether the artifacts of the latest successful pipeline of each branch and tag stay after they have expired."`
	Avatar            avatar.Upload            `param:"avatar" doc:"A picture of at most 200 KiB."`
	Topics            []string                 `param:"topics" comma:"" doc:"Topics of the project."`
	TagList           []string                 `param:"tag_list" comma:"" doc:"The former name of topics."`
}

func (f *Family) create(ctx context.Context, s auth.Instance, r *createRequest) (Project, error) {
	if r.Name == "" && r.Path == "" {
		return Project{}, endpoint.Parameters("name, path are missing, at least one parameter must be provided")
	}
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return Project{}, err
	}
	path := r.Path
	if path == "" {
		path = slug(r.Name)
	}
	spec := newSpec()
	spec.Path, spec.Name, spec.Description, spec.Topics = path, r.Name, r.Description, clean(append(r.Topics, r.TagList...))
	spec.Visibility, spec.DefaultBranch, spec.ImportURL = entity.Visibilities[r.Visibility], r.DefaultBranch, r.ImportURL
	spec.Features = v1alpha1.Features{Repository: features[r.RepositoryAccess], ContainerRegistry: features[r.ContainerRegistry]}
	spec.MergeRequests.Squash = squashOptions[r.SquashOption]
	spec.MergeRequests.RequirePipeline, spec.MergeRequests.AllowSkippedPipeline = r.RequirePipeline, r.AllowSkipped
	spec.Pipelines = v1alpha1.Pipelines{Public: &r.PublicJobs, KeepLatestArtifacts: &r.KeepLatest}
	into := ""
	if r.NamespaceID.Set && !r.NamespaceID.Null {
		into = strconv.FormatInt(r.NamespaceID.Value, 10)
	}
	made, err := f.add(ctx, s.Subject, into, spec, picture)
	if errors.Is(err, errTaken) {
		return Project{}, taken()
	}
	return made, err
}

// newSpec returns the spec that all projects created over REST begin with. Clients expect that a new project has no earlier content, and
// that a deleted project leaves nothing behind.
func newSpec() v1alpha1.ProjectSpec {
	return v1alpha1.ProjectSpec{AdoptRepository: v1alpha1.AdoptNone, DeletionPolicy: v1alpha1.DeletionPolicyDelete}
}

// errTaken is returned if another project or group has the full path.
var errTaken = errors.New("the path has already been taken")

// add creates a project with an avatar in the group with an id or path, or in the caller's own namespace if that is empty.
func (f *Family) add(ctx context.Context, s auth.Subject, into string, spec v1alpha1.ProjectSpec, picture avatar.Sent) (Project, error) {
	scope, err := f.holder(ctx, s, into, func() error { return check(spec, v1alpha1.ProjectSpec{}) })
	if err != nil {
		return Project{}, err
	}
	if err := f.free(ctx, scope.Groups, spec.Path); err != nil {
		return Project{}, err
	}
	group := scope.Groups[0]
	spec.GroupRef = catalog.ReferNamed(group)
	p := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Labels: s.Caller.Creator()}, Spec: spec}
	same := func(holder *v1alpha1.Project) bool {
		return strings.EqualFold(holder.Spec.Path, spec.Path) && catalog.Names(holder.Spec.GroupRef, group)
	}
	err = f.projects.CreateUnique(ctx, p, same, []string{group.Name, strings.ToLower(spec.Path)}, f.Avatars.Then(p, picture)...)
	if errors.Is(err, store.ErrExists) {
		return Project{}, errTaken
	}
	if err != nil {
		return Project{}, err
	}
	scope.Project = p
	return f.show(ctx, scope, viewer{caller: s.Caller, settings: true, admin: s.Caller.Admin})
}

// free returns errTaken if a project or group in a group has the path.
func (f *Family) free(ctx context.Context, in []*v1alpha1.Group, path string) error {
	_, err := f.Catalog.ByPath(ctx, catalog.FullPath(in, path))
	if err == nil {
		return errTaken
	}
	return catalog.IgnoreNotFound(err)
}

// holder returns the group of a new project: the requested group or the caller's personal namespace. It creates the personal namespace only
// for a valid project.
func (f *Family) holder(ctx context.Context, s auth.Subject, id string, good func() error) (catalog.Scope, error) {
	u, err := f.landlord(ctx, s.Caller, id)
	if err != nil {
		return catalog.Scope{}, err
	}
	if u == nil {
		scope, err := f.Guard.LocateNamed(ctx, s, auth.CreateProjects, id)
		if err != nil {
			return catalog.Scope{}, err
		}
		return scope, good()
	}
	if err := good(); err != nil {
		return catalog.Scope{}, err
	}
	return f.personal(ctx, u, f.projects.CheckNew)
}

// landlord returns the user whose personal namespace has the path, does not exist yet, and can be created by the caller. Administrators can
// create all personal namespaces, other users their own. The empty path stands for the caller's own namespace, whether or not it exists.
// landlord returns nil for all other paths.
func (f *Family) landlord(ctx context.Context, c auth.Caller, path string) (*v1alpha1.User, error) {
	if path == "" {
		u, err := c.Account()
		if err == nil && c.External() {
			err = endpoint.Forbidden("").Describe("External users have no personal namespace: name the group to create the project in.")
		}
		return u, err
	}
	if _, err := f.Guard.Group(ctx, path); !errors.Is(err, catalog.ErrNotFound) {
		return nil, err
	}
	if _, err := strconv.ParseInt(path, 10, 64); err == nil {
		return nil, nil // an id, not a username
	}
	u, err := f.Catalog.UserByUsername(ctx, path)
	if err != nil {
		return nil, catalog.IgnoreNotFound(err)
	}
	if own, err := c.Account(); c.Admin || err == nil && own.UID == u.UID && !c.External() {
		return u, nil
	}
	return nil, nil
}

// personal returns the group of a user's personal projects, and creates it if necessary. It creates nothing if the path is taken, or if
// accepts refuses the group.
func (f *Family) personal(ctx context.Context, u *v1alpha1.User, accepts func(catalog.Scope) error) (none catalog.Scope, err error) {
	g := namespace.PersonalOf(u, f.Home)
	if namespace.Reserved(g.Spec.Path) {
		return none, endpoint.Invalid(map[string][]string{"namespace": {"is not available: the username " + namespace.ReservedName}})
	}
	holder, err := f.Catalog.ByPath(ctx, g.Spec.Path)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && f.Catalog.MayHoldRootGroup(f.Home, g.Spec.Path):
		if err := accepts(catalog.Scope{Groups: []*v1alpha1.Group{g}}); err != nil {
			return none, err
		}
	case errors.Is(err, catalog.ErrNotFound):
		return none, unavailable()
	case err != nil:
		return none, err
	default:
		if err := f.own(ctx, holder, u); err != nil {
			return none, err
		}
	}
	err = f.groups.EnsureUnasked(ctx, g, func(ctx context.Context, w store.Unasked) error {
		// The group can exist with a path other than the username.
		if err := f.own(ctx, g, u); err != nil {
			return err
		}
		return w.Ensure(ctx, owner.Membership(u, g))
	})
	if err != nil {
		return none, err
	}
	// Another request may have created it first.
	if holder, err = f.Catalog.ByPath(ctx, g.Spec.Path); err != nil || holder.GetUID() != g.UID {
		return none, unavailable()
	}
	return catalog.Scope{Groups: []*v1alpha1.Group{g}}, nil
}

// own returns an error for a group that is not the personal group of the user.
func (f *Family) own(ctx context.Context, o metav1.Object, u *v1alpha1.User) error {
	own, err := namespace.IsPersonal(ctx, f.Catalog, o, u, f.Home)
	if err == nil && !own {
		err = unavailable()
	}
	return err
}

func unavailable() error {
	return endpoint.Invalid(map[string][]string{"namespace": {"is not available: another group holds the path"}})
}

var notInPath = regexp.MustCompile(`[^a-zA-Z0-9_.]+`)

// slug derives a path from a name.
func slug(name string) string {
	return strings.Trim(notInPath.ReplaceAllString(strings.ToLower(name), "-"), "-.")
}

func taken() *endpoint.Error {
	return endpoint.Invalid(map[string][]string{"name": {"has already been taken"}, "path": {"has already been taken"}})
}

type updateRequest struct {
	Name              endpoint.Optional[string] `param:"name" blank:"refuse" doc:"Display name of the project."`
	Path              endpoint.Optional[string] `param:"path" blank:"refuse" doc:"Its segment of the full path."`
	Description       endpoint.Optional[string] `param:"description" example:"The site of the bakery" doc:"Purpose of the project."`
	Visibility        endpoint.Optional[string] `param:"visibility" values:"private,internal,public" doc:"Users who can see the project; only owners can change it."`
	DefaultBranch     endpoint.Optional[string] `param:"default_branch" blank:"refuse" doc:"The default branch."`
	RepositoryAccess  endpoint.Optional[string] `param:"repository_access_level" values:"enabled,private,disabled" doc:"Access to the repository."`
	ContainerRegistry endpoint.Optional[string] `param:"container_registry_access_level" values:"enabled,private,disabled" doc:"Access to the container registry."`
	SquashOption      endpoint.Optional[string] `param:"squash_option" values:"never,always,default_on,default_off" doc:"Whether merges squash commits."`
	RequirePipeline   endpoint.Optional[bool]   `param:"only_allow_merge_if_pipeline_succeeds" doc:"Whether merge requests can be merged only if their last pipelines have succeeded."`
	AllowSkipped      endpoint.Optional[bool]   `param:"allow_merge_on_skipped_pipeline" doc:"Whether a skipped pipeline counts as successful for merges."`
	PublicJobs        endpoint.Optional[bool]   `param:"public_jobs" doc:"Whether everybody who can see the code can see pipelines, logs and artifacts; otherwise only Reporters."`
	KeepLatest        endpoint.Optional[bool]   `param:"keep_latest_artifact" doc:"Whether the artifacts of the latest successful pipeline of each branch and tag stay after they have expired."`
	Avatar            avatar.Upload             `param:"avatar" doc:"A picture of at most 200 KiB; empty to remove it."`

	Topics  endpoint.Optional[[]string] `param:"topics" comma:"" doc:"Topics of the project; they replace the existing ones."`
	TagList endpoint.Optional[[]string] `param:"tag_list" comma:"" doc:"The former name of topics."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Project, error) {
	picture, err := f.Avatars.Check(ctx, r.Avatar)
	if err != nil {
		return Project{}, err
	}
	scope := s.Scope
	// A path that differs only in case is the project's own.
	if path := r.Path.Or(scope.Project.Spec.Path); !strings.EqualFold(path, scope.Project.Spec.Path) {
		if err := f.free(ctx, scope.Groups, path); errors.Is(err, errTaken) {
			return Project{}, taken()
		} else if err != nil {
			return Project{}, err
		}
	}
	p, err := f.write(ctx, s, func(spec *v1alpha1.ProjectSpec) error {
		spec.Name = r.Name.Or(spec.Name)
		spec.Path = r.Path.Or(spec.Path)
		if r.Description.Set {
			spec.Description = r.Description.Value // null clears it
		}
		spec.DefaultBranch = r.DefaultBranch.Or(spec.DefaultBranch)
		if r.Topics.Set || r.TagList.Set {
			spec.Topics = clean(append(r.Topics.Value, r.TagList.Value...))
		}
		if v, ok := entity.Visibilities[r.Visibility.Value]; ok && v != spec.Visibility {
			if !s.Has(s.Access, auth.OwnProject) {
				return s.Denied(auth.OwnProject)
			}
			if err := f.checkWidth(ctx, scope.Project, v); err != nil {
				return err
			}
			spec.Visibility = v
		}
		if a, ok := features[r.RepositoryAccess.Value]; ok {
			spec.Features.Repository = a
		}
		if a, ok := features[r.ContainerRegistry.Value]; ok {
			spec.Features.ContainerRegistry = a
		}
		if o, ok := squashOptions[r.SquashOption.Value]; ok {
			spec.MergeRequests.Squash = o
		}
		m := &spec.MergeRequests
		m.RequirePipeline, m.AllowSkippedPipeline = r.RequirePipeline.Or(m.RequirePipeline), r.AllowSkipped.Or(m.AllowSkippedPipeline)
		spec.Pipelines = v1alpha1.Pipelines{
			Public: ptr.To(r.PublicJobs.Or(spec.Pipelines.ArePublic())), KeepLatestArtifacts: ptr.To(r.KeepLatest.Or(spec.Pipelines.KeepsLatestArtifacts())),
		}
		return nil
	})
	if err != nil {
		return Project{}, err
	}
	if p, err = avatar.Set(ctx, f.Avatars, f.projects, s.Subject, p, picture); err != nil {
		return Project{}, err
	}
	return f.changed(ctx, s, p)
}

func (f *Family) avatar(ctx context.Context, s auth.Project, _ *endpoint.None) (endpoint.Content, error) {
	return f.Avatars.Content(ctx, s.Scope.Project)
}

// change updates the spec of the request's project with mutate, and shows the project.
func (f *Family) change(ctx context.Context, s auth.Project, mutate func(*v1alpha1.ProjectSpec) error) (Project, error) {
	p, err := f.write(ctx, s, mutate)
	if err != nil {
		return Project{}, err
	}
	return f.changed(ctx, s, p)
}

// changed shows the request's project after an update.
func (f *Family) changed(ctx context.Context, s auth.Project, p *v1alpha1.Project) (Project, error) {
	return f.show(ctx, catalog.Scope{Project: p, Groups: s.Scope.Groups}, viewed(s.Subject, s.Access))
}

// write updates the spec of the request's project with mutate.
func (f *Family) write(ctx context.Context, s auth.Project, mutate func(*v1alpha1.ProjectSpec) error) (*v1alpha1.Project, error) {
	p, err := f.projects.Update(ctx, s.Subject, store.Only{}, func(p *v1alpha1.Project) error {
		was := p.Spec
		if err := mutate(&p.Spec); err != nil {
			return err
		}
		return check(p.Spec, was)
	})
	if errors.Is(err, store.ErrExists) {
		return nil, taken()
	}
	if err != nil {
		return nil, err
	}
	if branch := p.Spec.DefaultBranch; branch != "" && branch != s.Scope.Project.Spec.DefaultBranch {
		if err := f.Refs.SetHead(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
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

// Accepted is the response to a request that continues in the background.
type Accepted struct {
	Message string `json:"message"`
}

func (f *Family) remove(ctx context.Context, s auth.Project, _ *endpoint.None) (Accepted, error) {
	if err := f.projects.Delete(ctx, s.Subject, store.Only{}); err != nil {
		return Accepted{}, err
	}
	return Accepted{Message: "202 Accepted"}, nil
}
