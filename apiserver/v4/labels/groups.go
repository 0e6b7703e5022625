package labels

import (
	"context"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// ofGroups are the endpoints of groups. Those without {label_id} are older forms, which name the label in a parameter.
func (f *Family) ofGroups() endpoint.Table {
	return endpoint.Table{
		endpoint.Get("/groups/{id}/labels", f.listInGroup).Needs(auth.ReadGroupLabels).
			Doc("List the labels of a group and of the groups above."),
		endpoint.Get("/groups/{id}/labels/{label_id}", f.getInGroup).Needs(auth.ReadGroupLabels).
			Doc("Get a label."),
		endpoint.Post("/groups/{id}/labels", f.createInGroup).Needs(auth.WriteGroupLabels).
			Doc("Create a label of a group."),
		endpoint.Put("/groups/{id}/labels/{label_id}", f.updateInGroup).Needs(auth.WriteGroupLabels).
			Doc("Update a label of a group itself."),
		endpoint.Put("/groups/{id}/labels", f.updateNamedInGroup).Needs(auth.WriteGroupLabels).
			Doc("Update a label of a group itself by name. Deprecated."),
		endpoint.Delete("/groups/{id}/labels/{label_id}", auth.On[auth.Group](f.remove)).Needs(auth.WriteGroupLabels).
			Conditional().Doc("Delete a label of a group itself."),
		endpoint.Delete("/groups/{id}/labels", auth.On[auth.Group](f.removeNamed)).Needs(auth.WriteGroupLabels).
			Conditional().Doc("Delete a label of a group itself by name. Deprecated."),
		endpoint.Post("/groups/{id}/labels/{label_id}/subscribe", asGroupLabel(f.subscribe)).Needs(auth.ReadGroupLabels).
			Also(http.StatusNotModified).Doc("Subscribe the caller to a label."),
		endpoint.Post("/groups/{id}/labels/{label_id}/unsubscribe", asGroupLabel(f.unsubscribe)).Needs(auth.ReadGroupLabels).
			Also(http.StatusNotModified).Doc("Unsubscribe the caller from a label."),
	}
}

// asGroupLabel adapts a handler to groups, whose labels are shown without the fields of a project.
func asGroupLabel[Req any](handler endpoint.Func[auth.Subject, Req, Label]) endpoint.Func[auth.Group, Req, GroupLabel] {
	return func(ctx context.Context, s auth.Group, r *Req) (GroupLabel, error) {
		l, err := handler(ctx, s.Subject, r)
		return l.GroupLabel, err
	}
}

// reach selects the labels that a request about a group includes in addition to the group's own.
type reach struct {
	Ancestors   bool `param:"include_ancestor_groups" default:"true" doc:"Whether labels of groups above are included."`
	Descendants bool `param:"include_descendant_groups" default:"false" doc:"Whether labels of groups below that the caller sees are included."`
	OnlyGroups  bool `param:"only_group_labels" default:"true" doc:"Whether labels of projects that the caller sees are left out."`
}

type groupListRequest struct {
	endpoint.Paging
	reach
	WithCounts bool   `param:"with_counts" default:"false" doc:"Whether to count issues and merge requests."`
	Search     string `param:"search" doc:"Part of a title or description."`
}

func (f *Family) listInGroup(ctx context.Context, s auth.Group, r *groupListRequest) (endpoint.List[GroupLabel], error) {
	all, err := f.reached(ctx, s.Subject, r.reach)
	if err != nil {
		return endpoint.List[GroupLabel]{}, err
	}
	all = chosen(all, true, r.Search)
	v, err := f.viewer(ctx, s.Subject, endpoint.Rows(r.Paging, all), r.WithCounts)
	if err != nil {
		return endpoint.List[GroupLabel]{}, err
	}
	return endpoint.Page(r.Paging, all, v.groupLabel), nil
}

type groupGetRequest struct {
	labelRequest
	reach
}

func (f *Family) getInGroup(ctx context.Context, s auth.Group, r *groupGetRequest) (GroupLabel, error) {
	all, err := f.reached(ctx, s.Subject, r.reach)
	if err != nil {
		return GroupLabel{}, err
	}
	e, err := pick(all, r.LabelID)
	if err != nil {
		return GroupLabel{}, err
	}
	l, err := f.show(ctx, s.Subject, e)
	return l.GroupLabel, err
}

// reached returns the labels that a request about a group includes, by their titles. Labels with the same title begin with the one of the
// nearest group above.
func (f *Family) reached(ctx context.Context, s auth.Subject, r reach) ([]entry, error) {
	if r.Descendants || !r.OnlyGroups {
		return f.inside(ctx, s, r)
	}
	all, err := f.view(ctx, s.Scope)
	if !r.Ancestors {
		all = chosen(all, false, "")
	}
	return all, err
}

// inside is the key of the labels of a group and of everything below it, as a caller sees them.
type inside struct {
	viewer auth.Viewer
	// version is the version of the scope of the group.
	version string
	reach
}

// inside is reached for a request that includes the projects and groups below the group. The result is cached until something changes,
// because clients that request one page also request the others.
func (f *Family) inside(ctx context.Context, s auth.Subject, r reach) ([]entry, error) {
	q := inside{viewer: s.Caller.Viewer(), version: s.Scope.Version(), reach: r}
	now := f.Clock.Now()
	return f.insides.Recall(q, now, func(c *catalog.Catalog) ([]entry, time.Time, error) {
		tree := s.Caller.View(c, now)
		all, err := entries(ctx, c, s.Scope)
		if err != nil {
			return nil, time.Time{}, err
		}
		if !r.Ancestors {
			all = chosen(all, false, "")
		}
		below, err := below(ctx, c, s, tree, r)
		return byTitle(append(all, below...)), tree.Until(), err
	})
}

// below returns the labels of the projects and groups below a group that a request includes and the caller sees.
func below(ctx context.Context, c *catalog.Catalog, s auth.Subject, tree *catalog.View, r reach) ([]entry, error) {
	of := s.Scope.Groups[0].UID
	var seen []catalog.Seen
	if r.Descendants {
		groups, err := tree.Groups(ctx)
		if err != nil {
			return nil, err
		}
		seen = slices.DeleteFunc(groups, func(g catalog.Seen) bool { return !within(g.Groups[1:], of) })
	}
	if !r.OnlyGroups {
		projects, err := tree.Projects(ctx)
		if err != nil {
			return nil, err
		}
		seen = append(seen, slices.DeleteFunc(projects, func(p catalog.Seen) bool {
			return p.Groups[0].UID != of && (!r.Descendants || !within(p.Groups, of))
		})...)
	}
	var all []entry
	for _, in := range seen {
		if !auth.AccessOf(s.Caller, in).Sees() {
			continue
		}
		entries, err := entries(ctx, c, in.Scope)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(entries, func(e entry) bool { return e.Above > 0 })...)
	}
	return all, nil
}

func within(groups []*v1alpha1.Group, uid types.UID) bool {
	return slices.ContainsFunc(groups, func(g *v1alpha1.Group) bool { return g.UID == uid })
}

func (f *Family) createInGroup(ctx context.Context, s auth.Group, r *attributes) (GroupLabel, error) {
	l, err := f.add(ctx, s.Subject, *r, nil)
	return l.GroupLabel, err
}

type groupUpdateRequest struct {
	labelRequest
	appearance
}

func (f *Family) updateInGroup(ctx context.Context, s auth.Group, r *groupUpdateRequest) (GroupLabel, error) {
	l, err := f.change(ctx, s.Subject, r.LabelID, changes{appearance: r.appearance})
	return l.GroupLabel, err
}

type groupUpdateNamedRequest struct {
	named
	appearance
}

func (f *Family) updateNamedInGroup(ctx context.Context, s auth.Group, r *groupUpdateNamedRequest) (GroupLabel, error) {
	l, err := f.change(ctx, s.Subject, r.key(), changes{appearance: r.appearance})
	return l.GroupLabel, err
}
