// Package storagemoves is the family of the moves of repositories between shards.
package storagemoves

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/storagemove"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=storagemoves,verbs=get;create;delete,roleName=forgeplane-apiserver
// +kubebuilder:rbac:groups=forgeplane.dev,resources=storagemoves/status,verbs=patch,roleName=forgeplane-apiserver

// Family serves moves.
type Family struct {
	family.Kit
	tasks family.Tasks
	// moves writes for requests, and background for tasks.
	moves, background *store.Store[store.Only, *v1alpha1.StorageMove]
}

// New returns the family.
func New(k family.Kit) *Family {
	none := func(context.Context, auth.Subject, store.Only) (*v1alpha1.StorageMove, error) {
		return nil, catalog.ErrNotFound
	}
	f := &Family{Kit: k, moves: store.New(k.Writer, none), background: store.New(k.Background, none)}
	f.tasks = k.Queue(job.QueueOptions{Name: "storage-move-requests", Run: f.process})
	return f
}

// Table lists the endpoints. The endpoints of a project have the instance as their subject, so that other callers do not learn whether the
// project exists.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/project_repository_storage_moves", f.list).Needs(auth.AdminInstance).
			Doc("List the moves of the repositories of all projects, the newest first."),
		endpoint.Get("/project_repository_storage_moves/{repository_storage_id}", f.get).Needs(auth.AdminInstance).
			Doc("Get a move."),
		endpoint.Post("/project_repository_storage_moves", f.createAll).Needs(auth.AdminInstance).Status(http.StatusAccepted).
			Doc("Create moves of the repositories of all projects off a storage."),
		endpoint.Get("/projects/{id}/repository_storage_moves", f.listOf).Needs(auth.AdminInstance).
			Doc("List the moves of the repositories of a project, the newest first."),
		endpoint.Get("/projects/{id}/repository_storage_moves/{repository_storage_id}", f.getOf).Needs(auth.AdminInstance).
			Doc("Get a move of a project."),
		endpoint.Post("/projects/{id}/repository_storage_moves", f.create).Needs(auth.AdminInstance).
			Doc("Create a move of the repositories of a project to another storage."),
	}
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, _ auth.Instance, r *listRequest) (endpoint.List[Move], error) {
	return f.page(ctx, r.Paging, "")
}

// page returns a page of moves of the project with a UID, or of all projects if uid is empty.
func (f *Family) page(ctx context.Context, p endpoint.Paging, uid types.UID) (endpoint.List[Move], error) {
	skip, limit := p.Window()
	rows, total, err := f.Activity.Moves.List(ctx, uid, skip, limit)
	if err != nil {
		return endpoint.List[Move]{}, err
	}
	return endpoint.Cut(rows, total, f.showIn(ctx)), nil
}

type getRequest struct {
	ID int64 `param:"repository_storage_id" doc:"Id of the move."`
}

func (f *Family) get(ctx context.Context, _ auth.Instance, r *getRequest) (Move, error) {
	m, err := f.find(ctx, r.ID)
	return f.showIn(ctx)(m), err
}

func (f *Family) find(ctx context.Context, id int64) (storagemove.Move, error) {
	m, err := f.Activity.Moves.Get(ctx, id)
	if errors.Is(err, storagemove.ErrNotRecorded) {
		err = endpoint.NotFound("")
	}
	return m, err
}

type listOfRequest struct {
	endpoint.Paging
	Project string `param:"id" doc:"Id or full path of the project."`
}

func (f *Family) listOf(ctx context.Context, _ auth.Instance, r *listOfRequest) (endpoint.List[Move], error) {
	s, err := f.project(ctx, r.Project)
	if err != nil {
		return endpoint.List[Move]{}, err
	}
	return f.page(ctx, r.Paging, s.Project.UID)
}

type getOfRequest struct {
	Project string `param:"id" doc:"Id or full path of the project."`
	ID      int64  `param:"repository_storage_id" doc:"Id of the move."`
}

func (f *Family) getOf(ctx context.Context, _ auth.Instance, r *getOfRequest) (Move, error) {
	s, err := f.project(ctx, r.Project)
	if err != nil {
		return Move{}, err
	}
	m, err := f.find(ctx, r.ID)
	if err == nil && m.Project.UID != s.Project.UID {
		err = endpoint.NotFound("")
	}
	return f.showIn(ctx)(m), err
}

// project returns the project that a path parameter names.
func (f *Family) project(ctx context.Context, named string) (catalog.Scope, error) {
	s, err := auth.ProjectNamed(ctx, f.Catalog, named)
	if catalog.Misplaced(err) || errors.Is(err, catalog.ErrNotFound) {
		err = endpoint.NotFound("Project")
	}
	return s, err
}
