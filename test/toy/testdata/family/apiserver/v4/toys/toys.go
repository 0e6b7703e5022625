// Package toys is the family of the toys of projects.
package toys

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=toys,verbs=get;delete,roleName=forgeplane-apiserver

// Family serves toys.
type Family struct {
	toys store.Identified[*v1alpha1.Toy]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{store.ByID(k.Writer, k.Catalog, catalog.ListInScope[*v1alpha1.Toy])}
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/toys", f.list).Needs(auth.ReadToys).
			Doc("List the toys of a project."),
		endpoint.Delete("/projects/{id}/toys/{toy_id}", f.remove).Needs(auth.WriteToys).
			Doc("Delete a toy of a project."),
	}
}

// Toy is a toy of a project.
type Toy struct {
	ID int64 `json:"id"`
}

func show(t *v1alpha1.Toy) Toy { return Toy{t.RESTID()} }

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Toy], error) {
	all, err := f.toys.List(ctx, s.Subject)
	return endpoint.Page(r.Paging, all, show), err
}

type toyRequest struct {
	ToyID int64 `param:"toy_id" doc:"Id of the toy."`
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *toyRequest) (endpoint.None, error) {
	return endpoint.None{}, f.toys.Delete(ctx, s.Subject, r.ToyID)
}
