package projects

import (
	"context"
	"errors"
	"net/http"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

type transferRequest struct {
	Namespace string `param:"namespace" required:"" blank:"refuse" example:"bakery" doc:"Id or full path of the group or user to which the project moves."`
}

// transfer moves the request's project to another group of its Kubernetes namespace. The object and everything that is declared for it
// stay. Other namespaces belong to other tenants, and a Kubernetes object cannot change its namespace. The move never makes the project
// visible to more users.
func (f *Family) transfer(ctx context.Context, s auth.Project, r *transferRequest) (Project, error) {
	target, err := f.destination(ctx, s, r.Namespace)
	if err != nil {
		return Project{}, err
	}
	group, p := target.Groups[0], s.Scope.Project
	switch _, err := f.Catalog.ByPath(ctx, catalog.FullPath(target.Groups, p.Spec.Path)); {
	case group.UID == s.Scope.Groups[0].UID:
		return Project{}, failed("Project is already in this namespace.")
	case group.Namespace != p.Namespace:
		return Project{}, failed("The namespace belongs to another Kubernetes namespace than the project, and a project cannot change its Kubernetes namespace.")
	case err == nil:
		return Project{}, failed(existing)
	case !errors.Is(err, catalog.ErrNotFound):
		return Project{}, err
	}
	to := catalog.Scope{Project: p, Groups: target.Groups}
	to.Project, err = f.projects.Move(ctx, s.Subject, store.Only{}, to, func(p *v1alpha1.Project) error {
		p.Spec.GroupRef = catalog.ReferNamed(group)
		p.Spec.Visibility = catalog.Visibility(p.Spec.Visibility, s.Scope.Groups)
		return nil
	})
	if errors.Is(err, store.ErrExists) {
		return Project{}, failed(existing)
	}
	if err != nil {
		return Project{}, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, to)
	if err != nil {
		return Project{}, err
	}
	return f.show(ctx, to, viewed(s.Subject, access))
}

// destination returns the group that a parameter names, in which the caller can create projects. A group that the caller cannot see is not
// found.
func (f *Family) destination(ctx context.Context, s auth.Project, name string) (catalog.Scope, error) {
	if u, err := f.landlord(ctx, s.Caller, name); err != nil {
		return catalog.Scope{}, err
	} else if u != nil && s.Scope.Project.Namespace == f.Home {
		return f.personal(ctx, u, func(to catalog.Scope) error { return f.projects.CheckMove(ctx, s.Subject, store.Only{}, to) })
	}
	target, err := f.Guard.Group(ctx, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return catalog.Scope{}, endpoint.NotFound("Namespace")
	}
	if err != nil {
		return catalog.Scope{}, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, target)
	switch {
	case err != nil:
		return catalog.Scope{}, err
	case !access.Sees():
		return catalog.Scope{}, endpoint.NotFound("Namespace")
	case !s.Has(access, auth.CreateProjects):
		return catalog.Scope{}, failed("You don't have permission to transfer projects into that namespace.")
	}
	return target, nil
}

// existing is the reason for refusing a group in which the path is taken.
const existing = "Project with same name or path in target namespace already exists"

func failed(reason string) error {
	return endpoint.Message(http.StatusBadRequest, "Failed to transfer project: %s", reason)
}

type locationsRequest struct {
	endpoint.Paging
	Search string `param:"search" doc:"Part of a name or full path."`
}

// locations lists the groups to which the caller can transfer the request's project.
func (f *Family) locations(ctx context.Context, s auth.Project, r *locationsRequest) (endpoint.List[entity.GroupPlace], error) {
	all, err := s.Caller.View(f.Catalog, f.Clock.Now()).Groups(ctx)
	if err != nil {
		return endpoint.List[entity.GroupPlace]{}, err
	}
	p, from := s.Scope.Project, s.Scope.Groups[0]
	all = store.Visible(all, func(to catalog.Seen) bool {
		g := to.Groups[0]
		return g.Namespace == p.Namespace && g.UID != from.UID && !namespace.Personal(g) &&
			s.Has(auth.AccessOf(s.Caller, to), auth.CreateProjects)
	})
	return entity.PageGroupPlaces(r.Paging, all, r.Search, f.WebURL), nil
}
