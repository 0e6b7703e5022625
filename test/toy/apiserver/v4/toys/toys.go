// Package toys is an example of a family in the activity database: endpoints on a table, and a queue of background work.
package toys

import (
	"context"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/test/toy/family"
	"github.com/forgeplane/forgeplane/test/toy/internal/toy"
)

// Family serves the toys of projects.
type Family struct {
	family.Kit
	tasks family.Tasks
}

// New returns the family.
func New(k family.Kit) *Family {
	f := &Family{Kit: k}
	f.tasks = k.Queue(job.QueueOptions{Name: "toys", Limits: fair.Halves(2), Run: f.assemble})
	return f
}

// Table lists the endpoints. Families of the server have their own abilities.
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/toys", f.list).Needs(auth.ReadProject).
			Doc("List the toys of a project."),
		endpoint.Post("/projects/{id}/toys", f.create).Needs(auth.AdminProject).
			Doc("Create a toy of a project. It is assembled in the background."),
	}
}

// Toy is a toy in the REST API.
type Toy struct {
	ID    int64  `json:"id"`
	State string `json:"state" doc:"ordered or whole."`
}

func show(r *toy.Row) Toy { return Toy{r.ID, r.State} }

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Toy], error) {
	all, _, err := f.Activity.Toys.List(ctx, "project_uid = ?", s.Scope.Project.UID)
	return endpoint.Page(r.Paging, all, show), err
}

// create adds the toy and its task in one transaction, so that neither exists without the other.
func (f *Family) create(ctx context.Context, s auth.Project, _ *endpoint.None) (Toy, error) {
	p := s.Scope.Project
	r := &toy.Row{Namespace: p.Namespace, ProjectUID: p.UID, State: "ordered"}
	err := f.Activity.Database.Atomically(ctx, "ordering a toy", func(ctx context.Context, _ bun.IDB) error {
		if err := f.Activity.Toys.Save(ctx, r); err != nil {
			return err
		}
		return f.tasks.Add(ctx, job.Task{Key: strconv.FormatInt(r.ID, 10), Tenant: fair.Namespace(p.Namespace)})
	})
	return show(r), err
}

// assemble runs the task of a toy. It is idempotent, because a task can run again after its work is done.
func (f *Family) assemble(ctx context.Context, a job.Attempt, progress func(string)) error {
	progress("assembling the toy")
	return f.Activity.Database.Atomically(ctx, "assembling a toy", func(ctx context.Context, _ bun.IDB) error {
		if err := a.Confirm(ctx); err != nil {
			return err
		}
		all, _, err := f.Activity.Toys.List(ctx, "id = ?", a.Key)
		if err != nil || len(all) == 0 {
			return err
		}
		all[0].State = "whole"
		return f.Activity.Toys.Save(ctx, all[0])
	})
}
