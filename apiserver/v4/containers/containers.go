// Package containers is the family of the container registry: its repositories and their tags.
package containers

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Family serves the repositories of images.
type Family struct {
	family.Kit
	tasks family.Tasks
	// cleanups stores the bulk deletions of tags.
	cleanups *store.Store[store.Only, *v1alpha1.RegistryCleanup]
}

// New returns the family.
func New(k family.Kit) *Family {
	none := func(context.Context, auth.Subject, store.Only) (*v1alpha1.RegistryCleanup, error) {
		return nil, catalog.ErrNotFound
	}
	return &Family{
		Kit: k, cleanups: store.New(k.Writer, none),
		tasks: k.Queue(job.QueueOptions{Name: registry.DeletionQueue, Run: deletion(k.Images)}),
	}
}

// deletion returns the options of the queue that deletes container repositories. Without a registry, tasks of the queue wait.
func deletion(r *registry.Registry) func(context.Context, job.Attempt, func(string)) error {
	if r != nil {
		return r.Delete
	}
	return func(context.Context, job.Attempt, func(string)) error {
		return errors.New("the container registry is off")
	}
}

const (
	ofProject = "/projects/{id}/registry/repositories"
	one       = ofProject + "/{repository_id}"
)

// Table is "Container registry" of the core interface document.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		forJobs(endpoint.Get(ofProject, f.list)).Needs(auth.ReadImages).Asks(auth.AdminImages).Anonymous(endpoint.Served).
			Doc("List the container repositories of a project."),
		endpoint.Get("/groups/{id}/registry/repositories", f.listOfGroup).Needs(auth.ReadGroupImages).Asks(auth.ReadImages, auth.AdminImages).
			Doc("List the container repositories of the projects of a group and of its subgroups."),
		forJobs(endpoint.Get("/registry/repositories/{id}", f.get)).Needs(auth.ReadImages).Asks(auth.AdminImages).Found(f.find).
			Doc("Get a container repository."),
		forJobs(endpoint.Delete(one, f.remove)).Needs(auth.AdminImages).Found(f.find).Status(http.StatusAccepted).
			Doc("Delete a container repository with all of its images, in the background."),
		forJobs(endpoint.Get(one+"/tags", f.tags)).Needs(auth.ReadImages).Anonymous(endpoint.Served).Found(f.find).
			Doc("List the tags of a container repository, the one with the newest image first."),
		forJobs(endpoint.Delete(one+"/tags", f.removeTags)).Needs(auth.AdminImages).Found(f.find).Status(http.StatusAccepted).
			Doc("Delete many tags of a container repository in the background, at most once an hour."),
		forJobs(endpoint.Get(one+"/tags/{tag_name}", f.tag)).Needs(auth.ReadImages).Anonymous(endpoint.Served).Found(f.find).
			Doc("Get a tag of a container repository."),
		forJobs(endpoint.Delete(one+"/tags/{tag_name}", f.removeTag)).Needs(auth.WriteImages).Found(f.find).Status(http.StatusOK).
			Doc("Delete a tag of a container repository. Its image remains available by its digest."),
	}
}

// forJobs makes an endpoint accept the tokens of the jobs of the project.
func forJobs(e *endpoint.Endpoint) *endpoint.Endpoint {
	return e.TakesWhile(feature.JobTokenRegistry, endpoint.JobToken)
}

// repository is the container repository of a request.
type repository struct{ record.Repository }

var _ auth.Placed = repository{}

// Parameter implements auth.Kept.
func (repository) Parameter() string { return "Id of the container repository." }

// Owner implements auth.Kept.
func (repository) Owner() types.UID { return "" }

// ProjectID implements auth.Placed.
func (r repository) ProjectID() int64 { return r.Repository.ProjectID }

// Missing implements auth.Placed.
func (repository) Missing() *endpoint.Error { return endpoint.NotFound("") }

// writable returns 403 for an archived project, and otherwise nil.
func writable(s auth.ProjectRecord[repository]) error {
	if s.Scope.Project.Spec.Archived {
		return endpoint.Forbidden("").Describe("The project is archived.")
	}
	return nil
}

// find is for endpoint.Found.
func (f *Family) find(ctx context.Context, s auth.Subject, id int64) (repository, error) {
	if f.Images == nil {
		return repository{}, endpoint.NotFound("")
	}
	r, err := f.Images.Records.Get(ctx, id)
	if errors.Is(err, record.ErrNotFound) || err == nil && s.Scope.Project != nil && s.Scope.Project.UID != r.ProjectUID {
		return repository{}, endpoint.NotFound("")
	}
	if err != nil {
		return repository{}, err
	}
	if s.Scope.Project != nil {
		return repository{r}, nil
	}
	// The UID distinguishes a project from a later project with its id.
	p, err := catalog.ByID[*v1alpha1.Project](ctx, f.Catalog, r.ProjectID)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && p.UID != r.ProjectUID {
		err = endpoint.NotFound("")
	}
	return repository{r}, err
}

type shownRequest struct {
	Tags      bool `param:"tags" doc:"Whether each repository has its tags in the response."`
	TagsCount bool `param:"tags_count" doc:"Whether each repository has the number of its tags in the response."`
}

type listRequest struct {
	endpoint.Paging
	shownRequest
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Repository], error) {
	rows, total, err := f.of(ctx, []types.UID{s.Scope.Project.UID}, r.Paging)
	if err != nil {
		return endpoint.List[Repository]{}, err
	}
	return f.page(ctx, rows, total, func(record.Repository) place {
		return place{s.Scope.Path(), s.Has(s.Access, auth.AdminImages)}
	}, wanted{tags: r.Tags, count: r.TagsCount})
}

// of returns a page of the repositories of projects, and their total number.
func (f *Family) of(ctx context.Context, projects []types.UID, p endpoint.Paging) ([]record.Repository, int, error) {
	if f.Images == nil {
		return nil, 0, nil
	}
	skip, limit := p.Window()
	return f.Images.Records.Of(ctx, projects, skip, limit)
}

type listOfGroupRequest struct {
	endpoint.Paging
}

func (f *Family) listOfGroup(ctx context.Context, s auth.Group, r *listOfGroupRequest) (endpoint.List[Repository], error) {
	seen, _, err := s.Caller.View(f.Catalog, f.Clock.Now()).Below(ctx, s.Scope.Groups[0])
	if err != nil {
		return endpoint.List[Repository]{}, err
	}
	places := map[types.UID]place{}
	var projects []types.UID
	for _, p := range seen {
		access := auth.AccessOf(s.Caller, p)
		if access.Sees() && s.Has(access, auth.ReadImages) {
			projects = append(projects, p.Project.UID)
			places[p.Project.UID] = place{p.Path(), s.Has(access, auth.AdminImages)}
		}
	}
	slices.Sort(projects)
	rows, total, err := f.of(ctx, projects, r.Paging)
	if err != nil {
		return endpoint.List[Repository]{}, err
	}
	return f.page(ctx, rows, total, func(r record.Repository) place { return places[r.ProjectUID] }, wanted{})
}

type getRequest struct {
	shownRequest
	Size bool `param:"size" doc:"Whether the response has the size of all images, in which common layers count once."`
}

func (f *Family) get(ctx context.Context, s auth.Record[repository], r *getRequest) (Repository, error) {
	at := place{s.Scope.Path(), s.Has(s.Access, auth.AdminImages)}
	return f.show(ctx, s.Record.Repository, at, wanted{tags: r.Tags, count: r.TagsCount, size: r.Size})
}
