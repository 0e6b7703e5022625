// Package badges is the family "Badges (project)" of the core interface document, and the same for groups.
package badges

import (
	"context"
	"crypto/rand"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// +kubebuilder:rbac:groups=forgeplane.dev,resources=badges,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// Family serves the badges of projects and groups.
type Family struct {
	family.Kit
	badges store.Identified[*v1alpha1.Badge]
}

// New returns the family.
func New(k family.Kit) *Family {
	return &Family{Kit: k, badges: store.ByID(k.Writer, k.Catalog, badge.Own)}
}

// Table lists the endpoints. Reading does not require signing in (API behaviour, section 2.7).
func (f *Family) Table() endpoint.Table {
	return slices.Concat(
		table[auth.Project](f, "/projects/{id}/badges", "a project", auth.ReadBadges, auth.WriteBadges),
		table[auth.Group](f, "/groups/{id}/badges", "a group", auth.ReadGroupBadges, auth.WriteGroupBadges))
}

func table[S auth.Form](f *Family, path, of string, read, write endpoint.Ability) endpoint.Table {
	return endpoint.Table{
		endpoint.Get(path, auth.On[S](f.list)).Needs(read).Asks(auth.ReadCode).Anonymous(endpoint.Served).
			Doc("List the badges of " + of + "; a project includes those of its groups."),
		endpoint.Get(path+"/render", auth.On[S](f.render)).Needs(write).Asks(auth.ReadCode).
			Doc("Get a preview of a badge for " + of + "."),
		endpoint.Get(path+"/{badge_id}", auth.On[S](f.get)).Needs(read).Asks(auth.ReadCode).Anonymous(endpoint.Served).
			Doc("Get a badge of " + of + " itself."),
		endpoint.Post(path, auth.On[S](f.create)).Needs(write).Asks(auth.ReadCode).
			Doc("Create a badge of " + of + "."),
		endpoint.Put(path+"/{badge_id}", auth.On[S](f.update)).Needs(write).Asks(auth.ReadCode).
			Doc("Update a badge of " + of + " itself."),
		endpoint.Delete(path+"/{badge_id}", auth.On[S](f.remove)).Needs(write).
			Conditional().Doc("Delete a badge of " + of + " itself."),
	}
}

type listRequest struct {
	endpoint.Paging
	Name string `param:"name" doc:"Only badges of exactly this name."`
}

func (f *Family) list(ctx context.Context, s auth.Subject, r *listRequest) (endpoint.List[Badge], error) {
	listed := badge.All
	if s.Scope.Project == nil {
		listed = badge.Own
	}
	all, err := listed(ctx, f.Catalog, s.Scope)
	if err != nil {
		return endpoint.List[Badge]{}, err
	}
	all = store.Visible(all, func(b *v1alpha1.Badge) bool { return r.Name == "" || b.Spec.Name == r.Name })
	return endpoint.Each(endpoint.Page(r.Paging, all, func(b *v1alpha1.Badge) *v1alpha1.Badge { return b }), func(page []*v1alpha1.Badge) ([]Badge, error) {
		specs := make([]v1alpha1.BadgeSpec, len(page))
		for i, b := range page {
			specs[i] = b.Spec
		}
		values, err := f.values(ctx, s, specs...)
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

// values are the current values of the placeholders. The controller renders the same values, but only after a push. A caller who cannot
// read the repository of the project does not learn its head commit.
func (f *Family) values(ctx context.Context, s auth.Subject, specs ...v1alpha1.BadgeSpec) (badge.Values, error) {
	scope, access, err := f.example(ctx, s)
	if err != nil {
		return nil, err
	}
	if scope.Project == nil || !slices.ContainsFunc(specs, func(s v1alpha1.BadgeSpec) bool { return badge.NeedHead(s.LinkURL, s.ImageURL) }) {
		return badge.ValuesOf(scope), nil
	}
	if scope.Project, err = f.Repositories.Now(ctx, scope.Project); err != nil {
		return nil, err
	}
	values := badge.ValuesOf(scope)
	if !s.Has(access, auth.ReadCode) {
		values = values.WithoutCommit()
	}
	return values, nil
}

// example returns the project whose values a request shows, and the caller's access to it: its own project or, if it is about a group, the
// oldest one directly in the group that the caller sees. If the caller sees no project there, it returns the group.
func (f *Family) example(ctx context.Context, s auth.Subject) (catalog.Scope, auth.Access, error) {
	if s.Scope.Project != nil {
		return s.Scope, s.Access, nil
	}
	in, err := catalog.List[*v1alpha1.Project](ctx, f.Catalog, catalog.IndexGroup, s.Scope.Keys()...)
	if err != nil {
		return catalog.Scope{}, auth.Access{}, err
	}
	for _, p := range store.InOrder(store.Visible(in, func(p *v1alpha1.Project) bool { return p.DeletionTimestamp.IsZero() })) {
		scope, err := f.Catalog.ProjectScope(ctx, p)
		if catalog.Misplaced(err) || err == nil && scope.Groups[0].UID != s.Scope.Groups[0].UID {
			continue
		}
		if err != nil {
			return catalog.Scope{}, auth.Access{}, err
		}
		if access, err := f.Guard.Access(ctx, s.Caller, scope); err != nil || access.Sees() {
			return scope, access, err
		}
	}
	return s.Scope, s.Access, nil
}

// shown returns the response with one badge.
func (f *Family) shown(ctx context.Context, s auth.Subject, b *v1alpha1.Badge) (Badge, error) {
	values, err := f.values(ctx, s, b.Spec)
	if err != nil {
		return Badge{}, err
	}
	return show(b, values), nil
}

type badgeRequest struct {
	BadgeID int64 `param:"badge_id" doc:"Id of the badge."`
}

func (f *Family) get(ctx context.Context, s auth.Subject, r *badgeRequest) (Badge, error) {
	b, err := f.badges.Get(ctx, s, r.BadgeID)
	if err != nil {
		return Badge{}, err
	}
	return f.shown(ctx, s, b)
}

type renderRequest struct {
	LinkURL  string `param:"link_url" required:"" doc:"URL of the link, with placeholders."`
	ImageURL string `param:"image_url" required:"" doc:"URL of the image, with placeholders."`
}

func (f *Family) render(ctx context.Context, s auth.Subject, r *renderRequest) (Preview, error) {
	spec := v1alpha1.BadgeSpec{LinkURL: r.LinkURL, ImageURL: r.ImageURL}
	if err := check(spec); err != nil {
		return Preview{}, err
	}
	values, err := f.values(ctx, s, spec)
	if err != nil {
		return Preview{}, err
	}
	return preview(spec, values), nil
}

type createRequest struct {
	LinkURL  string `param:"link_url" required:"" example:"https://ci.example/%{project_path}" doc:"URL of the link, with placeholders."`
	ImageURL string `param:"image_url" required:"" example:"https://ci.example/%{project_path}.svg" doc:"URL of the image, with placeholders."`
	Name     string `param:"name" doc:"Display name of the badge."`
}

func (f *Family) create(ctx context.Context, s auth.Subject, r *createRequest) (Badge, error) {
	of := s.Scope.Target()
	b := &v1alpha1.Badge{
		// Only its id identifies a badge, because a project can have equal badges.
		ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: v1alpha1.NaturalName(of.GetName(), r.Name, rand.Text())},
		Spec:       v1alpha1.BadgeSpec{Name: r.Name, LinkURL: r.LinkURL, ImageURL: r.ImageURL},
	}
	b.Spec.ProjectRef, b.Spec.GroupRef = s.Scope.Refs()
	if err := check(b.Spec); err != nil {
		return Badge{}, err
	}
	if err := f.badges.Create(ctx, b); err != nil {
		return Badge{}, err
	}
	return f.shown(ctx, s, b)
}

type updateRequest struct {
	BadgeID  int64                     `param:"badge_id" doc:"Id of the badge."`
	LinkURL  endpoint.Optional[string] `param:"link_url" doc:"URL of the link, with placeholders."`
	ImageURL endpoint.Optional[string] `param:"image_url" example:"https://ci.example/%{project_path}.svg" doc:"URL of the image, with placeholders."`
	Name     endpoint.Optional[string] `param:"name" doc:"Display name of the badge; null removes it."`
}

func (f *Family) update(ctx context.Context, s auth.Subject, r *updateRequest) (Badge, error) {
	b, err := f.badges.Update(ctx, s, r.BadgeID, func(b *v1alpha1.Badge) error {
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
	return f.shown(ctx, s, b)
}

func (f *Family) remove(ctx context.Context, s auth.Subject, r *badgeRequest) (endpoint.None, error) {
	return endpoint.None{}, f.badges.Delete(ctx, s, r.BadgeID)
}
