// Package epics is the family of the epics of groups.
package epics

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/epic"
)

// Family serves the epics of groups.
type Family struct{ family.Kit }

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	const all, one = "/groups/{id}/epics", "/groups/{id}/epics/{epic_id}"
	find := item.Finder{Stores: f.Activity}.Epic
	return endpoint.Table{
		endpoint.Get(all, f.list).Needs(auth.ReadEpics).Asks(auth.ReadConfidentialEpics).Anonymous(endpoint.Served).
			Doc("List the epics of a group and of the groups below that the caller sees."),
		endpoint.Get(one, f.get).Needs(auth.ReadEpics).Asks(auth.ReadConfidentialEpics).Anonymous(endpoint.Served).Found(find).
			Doc("Get an epic."),
		endpoint.Post(all, f.create).Needs(auth.WriteEpics).
			Doc("Create an epic."),
		endpoint.Put(one, f.update).Needs(auth.WriteEpics).Asks(auth.ReadConfidentialEpics).Found(find).Nonempty().
			Doc("Update, close or reopen an epic."),
		endpoint.Delete(one, f.remove).Needs(auth.DestroyEpics).Asks(auth.ReadConfidentialEpics).Found(find).
			Doc("Delete an epic with its notes, reactions and state events. Its issues remain."),
	}
}

func (f *Family) get(ctx context.Context, s auth.GroupRecord[item.Epic], _ *struct{}) (Epic, error) {
	return f.show(ctx, s.Scope, s.Record.Epic)
}

// places are the groups whose epics a request can be about, by their UIDs.
type places map[types.UID]catalog.Scope

// reach says which groups a list includes beside the group of the request itself.
type reach struct {
	Ancestors   bool `param:"include_ancestor_groups" default:"false" doc:"Whether epics of groups above are included."`
	Descendants bool `param:"include_descendant_groups" default:"true" doc:"Whether epics of groups below are included."`
}

// reached returns the groups that a list includes and the caller sees. The filter selects the epics that the caller sees in them.
func (f *Family) reached(ctx context.Context, s auth.Subject, r reach) (places, epic.Filter, error) {
	at, filter := places{}, epic.Filter{}
	if s.Caller.User != nil {
		filter.Viewer = s.Caller.User.UID
	}
	add := func(in catalog.Scope, access auth.Access) {
		uid := in.Groups[0].UID
		if _, known := at[uid]; known || !access.Sees() {
			return
		}
		at[uid] = in
		filter.In = append(filter.In, uid)
		if s.Has(access, auth.ReadConfidentialEpics) {
			filter.Confidential = append(filter.Confidential, uid)
		}
	}
	add(s.Scope, s.Access)
	if r.Ancestors {
		for _, above := range s.Scope.Levels()[1:] {
			access, err := f.Guard.Access(ctx, s.Caller, above)
			if err != nil {
				return nil, filter, err
			}
			add(above, access)
		}
	}
	if r.Descendants {
		groups, err := s.Caller.View(f.Catalog, f.Clock.Now()).Groups(ctx)
		if err != nil {
			return nil, filter, err
		}
		for _, g := range groups {
			if slices.ContainsFunc(g.Groups[1:], func(above *v1alpha1.Group) bool { return above.UID == s.Scope.Groups[0].UID }) {
				add(g.Scope, auth.AccessOf(s.Caller, g))
			}
		}
	}
	return at, filter, nil
}
