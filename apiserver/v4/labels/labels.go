// Package labels is the family "Labels (project)" of the core interface document, and the same for groups.
package labels

import (
	"context"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

// Family serves the labels of projects and groups.
type Family struct {
	family.Kit
	// labels are the labels of projects and groups, including inherited ones.
	labels   *store.Store[entry, *v1alpha1.Label]
	projects *store.Store[store.Only, *v1alpha1.Project]
	// rendered caches the HTML of descriptions.
	rendered *lru.Cache
	// views caches the labels of projects and groups by the versions of their scopes.
	views *catalog.Memory[string, []entry]
	// insides caches the labels below groups.
	insides *catalog.Memory[inside, []entry]
}

// maxViews is the maximum number of cached views of projects and groups. Each view can have thousands of labels.
const maxViews = 64

// maxInsides is the maximum number of cached results of inside. Each result can have the labels of all projects.
const maxInsides = 16

// maxRendered is the maximum number of cached descriptions.
const maxRendered = 1024

// +kubebuilder:rbac:groups=forgeplane.dev,resources=labels,verbs=get;create;patch;delete,roleName=forgeplane-apiserver

// New returns the family.
func New(k family.Kit) *Family {
	f := &Family{
		Kit: k, projects: store.Projects(k.Writer), rendered: lru.New(maxRendered),
		views: catalog.NewMemory[string, []entry](k.Catalog, maxViews, &v1alpha1.Label{}, &v1alpha1.Group{}, &v1alpha1.Project{}),
		insides: catalog.NewMemory[inside, []entry](k.Catalog, maxInsides,
			&v1alpha1.Label{}, &v1alpha1.Group{}, &v1alpha1.Project{}, &v1alpha1.Membership{}, &v1alpha1.User{}, &corev1.Namespace{}),
	}
	f.labels = store.New(k.Writer, f.changeable).Named("Label", "Label")
	return f
}

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	all := slices.Concat(f.ofProjects(), f.ofGroups())
	for _, e := range all {
		e.Asks(auth.ReadIssues, auth.ReadConfidential, auth.ReadMergeRequests) // to count what the caller sees
	}
	return all
}

// ofProjects are the endpoints of projects. Those without {label_id} are older forms, which name the label in a parameter.
func (f *Family) ofProjects() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/projects/{id}/labels", f.list).Needs(auth.ReadLabels).
			Doc("List the labels of a project, including those of its groups."),
		endpoint.Get("/projects/{id}/labels/{label_id}", f.get).Needs(auth.ReadLabels).
			Doc("Get a label."),
		endpoint.Post("/projects/{id}/labels", f.create).Needs(auth.WriteLabels).
			Doc("Create a label of a project."),
		endpoint.Put("/projects/{id}/labels/{label_id}", f.update).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Doc("Update a label, or its priority in the project."),
		endpoint.Put("/projects/{id}/labels", f.updateNamed).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Doc("Update a label by name. Deprecated."),
		endpoint.Delete("/projects/{id}/labels/{label_id}", auth.On[auth.Project](f.remove)).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Conditional().Doc("Delete a label."),
		endpoint.Delete("/projects/{id}/labels", auth.On[auth.Project](f.removeNamed)).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Conditional().Doc("Delete a label by name. Deprecated."),
		endpoint.Put("/projects/{id}/labels/{label_id}/promote", f.promote).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Doc("Promote a project label to a group label, which replaces it in all projects directly in the group."),
		endpoint.Put("/projects/{id}/labels/promote", f.promoteNamed).Needs(auth.WriteLabels).Asks(auth.WriteGroupLabels).
			Doc("Promote a project label to a group label by name. Deprecated."),
		endpoint.Post("/projects/{id}/labels/{label_id}/subscribe", auth.On[auth.Project](f.subscribe)).Needs(auth.ReadLabels).
			Also(http.StatusNotModified).Doc("Subscribe the caller to a label."),
		endpoint.Post("/projects/{id}/labels/{label_id}/unsubscribe", auth.On[auth.Project](f.unsubscribe)).Needs(auth.ReadLabels).
			Also(http.StatusNotModified).Doc("Unsubscribe the caller from a label."),
	}
}

type listRequest struct {
	endpoint.Paging
	WithCounts bool   `param:"with_counts" default:"false" doc:"Whether to count issues and merge requests."`
	Ancestors  bool   `param:"include_ancestor_groups" default:"true" doc:"Whether labels of groups above the project's own group are included."`
	Search     string `param:"search" doc:"Part of a title or description."`
}

func (f *Family) list(ctx context.Context, s auth.Project, r *listRequest) (endpoint.List[Label], error) {
	all, err := f.view(ctx, s.Scope)
	if err != nil {
		return endpoint.List[Label]{}, err
	}
	all = chosen(all, r.Ancestors, r.Search)
	v, err := f.viewer(ctx, s.Subject, endpoint.Rows(r.Paging, all), r.WithCounts)
	if err != nil {
		return endpoint.List[Label]{}, err
	}
	return endpoint.Page(r.Paging, all, v.label), nil
}

// labelRequest is a request for one label.
type labelRequest struct {
	LabelID string `param:"label_id" doc:"Id or title of the label."`
}

type getRequest struct {
	labelRequest
	Ancestors bool `param:"include_ancestor_groups" default:"true" doc:"Whether it may be a label of a group above the project's own group."`
}

func (f *Family) get(ctx context.Context, s auth.Project, r *getRequest) (Label, error) {
	l, err := f.find(ctx, s.Scope, r.LabelID)
	if err != nil {
		return Label{}, err
	}
	if !r.Ancestors && !l.near {
		return Label{}, notFound()
	}
	return f.show(ctx, s.Subject, l)
}

func notFound() error { return endpoint.NotFound("Label") }

func (f *Family) subscribe(ctx context.Context, s auth.Subject, r *labelRequest) (Label, error) {
	return f.changeSubscription(ctx, s, r.LabelID, "subscribe", f.Activity.Subscriptions.Subscribe)
}

func (f *Family) unsubscribe(ctx context.Context, s auth.Subject, r *labelRequest) (Label, error) {
	return f.changeSubscription(ctx, s, r.LabelID, "unsubscribe", f.Activity.Subscriptions.Unsubscribe)
}

func (f *Family) changeSubscription(
	ctx context.Context, s auth.Subject, key, verb string, change func(context.Context, database.User, database.Subject) (bool, error),
) (Label, error) {
	l, err := f.find(ctx, s.Scope, key)
	if err != nil {
		return Label{}, err
	}
	u, err := s.Caller.Person()
	if err != nil {
		return Label{}, err
	}
	changed, err := change(ctx, database.User{ID: u.RESTID(), UID: u.UID}, subject(l.Label))
	if changed || err != nil {
		audit.From(ctx).Wrote(verb, l.Label, err)
	}
	if err != nil {
		return Label{}, err
	}
	if !changed {
		return Label{}, endpoint.NotModified()
	}
	return f.show(ctx, s, l)
}

func subject(l *v1alpha1.Label) database.Subject {
	return database.Subject{Kind: subscription.KindLabel, ID: l.RESTID(), UID: l.UID}
}
