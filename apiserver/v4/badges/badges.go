// Package badges is the family "Badges (project)" of the core interface document.
package badges

import (
	"context"
	"crypto/rand"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/naturalkey"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Family serves the badges of projects.
type Family struct {
	catalog      *catalog.Catalog
	badges       store.Identified[*v1alpha1.Badge]
	repositories *repository.Repositories
}

// New returns the family.
func New(cat *catalog.Catalog, w store.Writer, r *repository.Repositories) *Family {
	return &Family{catalog: cat, badges: store.ByID(w, cat, badge.Own), repositories: r}
}

// Table lists the endpoints. Reading does not require signing in (API behaviour, section 2.7).
func (f *Family) Table() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/badges", f.list).Needs(auth.ReadBadges).Anonymous(endpoint.Served).
			Doc("List the badges of a project, those of its groups included."),
		endpoint.Get("/projects/{id}/badges/render", f.render).Needs(auth.WriteBadges).
			Doc("Show what the URLs of a badge would be for a project."),
		endpoint.Get("/projects/{id}/badges/{badge_id}", f.get).Needs(auth.ReadBadges).Anonymous(endpoint.Served).
			Doc("Get a badge of a project itself."),
		endpoint.Post("/projects/{id}/badges", f.create).Needs(auth.WriteBadges).
			Doc("Add a badge to a project."),
		endpoint.Put("/projects/{id}/badges/{badge_id}", f.update).Needs(auth.WriteBadges).
			Doc("Change a badge of a project itself."),
		endpoint.Delete("/projects/{id}/badges/{badge_id}", f.remove).Needs(auth.WriteBadges).
			Conditional().Doc("Remove a badge of a project itself."),
	}
}

type listRequest struct {
	endpoint.Paging
	Name string `param:"name" doc:"Only badges of exactly this name."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Badge], error) {
	scope := s.Scope
	all, err := badge.All(ctx, f.catalog, scope)
	if err != nil {
		return endpoint.List[Badge]{}, err
	}
	all = store.Known(all, func(b *v1alpha1.Badge) bool { return r.Name == "" || b.Spec.Name == r.Name })
	return endpoint.Each(endpoint.Page(r.Paging, all, func(b *v1alpha1.Badge) *v1alpha1.Badge { return b }), func(page []*v1alpha1.Badge) ([]Badge, error) {
		specs := make([]v1alpha1.BadgeSpec, len(page))
		for i, b := range page {
			specs[i] = b.Spec
		}
		values, err := f.values(ctx, scope, specs...)
		if err != nil {
			return nil, err
		}
		shown := make([]Badge, len(page))
		for i, b := range page {
			shown[i] = show(b, values)
		}
		return shown, nil
	})
}

// values are what the placeholders of badges stand for at the moment. The controller, which renders the same, comes after a push.
func (f *Family) values(ctx context.Context, scope catalog.Scope, specs ...v1alpha1.BadgeSpec) (badge.Values, error) {
	if slices.ContainsFunc(specs, func(s v1alpha1.BadgeSpec) bool { return badge.NeedHead(s.LinkURL, s.ImageURL) }) {
		now, err := f.repositories.Now(ctx, scope.Project)
		if err != nil {
			return nil, err
		}
		scope.Project = now
	}
	return badge.ValuesOf(scope), nil
}

// shown is the answer that has one badge.
func (f *Family) shown(ctx context.Context, scope catalog.Scope, b *v1alpha1.Badge) (Badge, error) {
	values, err := f.values(ctx, scope, b.Spec)
	if err != nil {
		return Badge{}, err
	}
	return show(b, values), nil
}

type badgeRequest struct {
	BadgeID int64 `param:"badge_id" doc:"Id of the badge."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *badgeRequest) (Badge, error) {
	b, err := f.badges.Get(ctx, s.Subject, r.BadgeID)
	if err != nil {
		return Badge{}, err
	}
	return f.shown(ctx, s.Scope, b)
}

type renderRequest struct {
	LinkURL  string `param:"link_url" required:"" doc:"Where the badge would lead."`
	ImageURL string `param:"image_url" required:"" doc:"Where the image would be."`
}

func (f *Family) render(ctx context.Context, s auth.Project, r *renderRequest) (Preview, error) {
	spec := v1alpha1.BadgeSpec{LinkURL: r.LinkURL, ImageURL: r.ImageURL}
	if err := check(spec); err != nil {
		return Preview{}, err
	}
	values, err := f.values(ctx, s.Scope, spec)
	if err != nil {
		return Preview{}, err
	}
	return preview(spec, values), nil
}

type createRequest struct {
	LinkURL  string `param:"link_url" required:"" doc:"Where the badge leads."`
	ImageURL string `param:"image_url" required:"" doc:"Where the image is."`
	Name     string `param:"name" doc:"Display name of the badge."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Badge, error) {
	scope := s.Scope
	p := scope.Project
	b := &v1alpha1.Badge{
		// Only its id identifies a badge: a project can have two equal ones.
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: naturalkey.Name(p.Name, r.Name, rand.Text())},
		Spec: v1alpha1.BadgeSpec{
			ProjectRef: ptr.To(catalog.ReferNamed(p)), Name: r.Name, LinkURL: r.LinkURL, ImageURL: r.ImageURL,
		},
	}
	if err := check(b.Spec); err != nil {
		return Badge{}, err
	}
	if err := f.badges.Create(ctx, s.Subject, b); err != nil {
		return Badge{}, err
	}
	return f.shown(ctx, scope, b)
}

type updateRequest struct {
	BadgeID  int64                     `param:"badge_id" doc:"Id of the badge."`
	LinkURL  endpoint.Optional[string] `param:"link_url" doc:"Where the badge leads."`
	ImageURL endpoint.Optional[string] `param:"image_url" doc:"Where the image is."`
	Name     endpoint.Optional[string] `param:"name" doc:"Display name of the badge; null removes it."`
}

func (f *Family) update(ctx context.Context, s auth.Project, r *updateRequest) (Badge, error) {
	b, err := f.badges.Update(ctx, s.Subject, r.BadgeID, func(b *v1alpha1.Badge) error {
		if r.LinkURL.Set {
			b.Spec.LinkURL = r.LinkURL.Value
		}
		if r.ImageURL.Set {
			b.Spec.ImageURL = r.ImageURL.Value
		}
		if r.Name.Set {
			b.Spec.Name = r.Name.Value
		}
		return check(b.Spec)
	})
	if err != nil {
		return Badge{}, err
	}
	return f.shown(ctx, s.Scope, b)
}

func (f *Family) remove(ctx context.Context, s auth.Project, r *badgeRequest) (endpoint.None, error) {
	return endpoint.None{}, f.badges.Delete(ctx, s.Subject, r.BadgeID)
}
