package epics

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/label"
)

type listRequest struct {
	endpoint.Paging
	reach
	IIDs           []int64                      `param:"iids" comma:"" doc:"Only epics with these internal ids (iid)."`
	AuthorID       endpoint.Optional[int64]     `param:"author_id" atMostOne:"author" doc:"Only epics of the user with this id."`
	AuthorUsername string                       `param:"author_username" atMostOne:"author" doc:"Only epics of the user with this username."`
	Labels         []string                     `param:"labels" comma:"" doc:"Only epics with all of the labels with these titles."`
	WithDetails    bool                         `param:"with_labels_details" doc:"Whether labels are shown as objects."`
	MyReaction     endpoint.Either[string]      `param:"my_reaction_emoji" words:"None,Any" doc:"Emoji that the caller has given; None or Any for epics without or with one."`
	Search         string                       `param:"search" doc:"Part of a title or description."`
	State          string                       `param:"state" values:"opened,closed,all" default:"all" doc:"Only epics in this state."`
	OrderBy        string                       `param:"order_by" values:"created_at,updated_at,title" default:"created_at" doc:"Attribute to sort the list by."`
	Sort           string                       `param:"sort" values:"asc,desc" default:"desc" doc:"Direction of the order."`
	CreatedAfter   endpoint.Optional[time.Time] `param:"created_after" doc:"Only epics that were created at this time or later."`
	CreatedBefore  endpoint.Optional[time.Time] `param:"created_before" doc:"Only epics that were created at this time or earlier."`
	UpdatedAfter   endpoint.Optional[time.Time] `param:"updated_after" doc:"Only epics that were changed at this time or later."`
	UpdatedBefore  endpoint.Optional[time.Time] `param:"updated_before" doc:"Only epics that were changed at this time or earlier."`
}

func (f *Family) list(ctx context.Context, s auth.Group, r *listRequest) (endpoint.List[Epic], error) {
	at, filter, err := f.reached(ctx, s.Subject, r.reach)
	if err != nil {
		return endpoint.List[Epic]{}, err
	}
	if err := f.choose(ctx, &filter, at, r); err != nil {
		return endpoint.List[Epic]{}, err
	}
	skip, limit := r.Window()
	page, total, err := f.Activity.Epics.List(ctx, filter, epic.Order{By: epic.Column(r.OrderBy), Descending: r.Sort == "desc"}, skip, limit)
	if err != nil {
		return endpoint.List[Epic]{}, err
	}
	shown, err := f.showAll(ctx, s.Scope, at, page, r.WithDetails)
	return endpoint.Cut(shown, total, func(e Epic) Epic { return e }), err
}

// choose adds the parameters of the request to a filter.
func (f *Family) choose(ctx context.Context, filter *epic.Filter, at places, r *listRequest) (err error) {
	filter.IIDs, filter.Search = r.IIDs, r.Search
	filter.CreatedAfter, filter.CreatedBefore = r.CreatedAfter.Value, r.CreatedBefore.Value
	filter.UpdatedAfter, filter.UpdatedBefore = r.UpdatedAfter.Value, r.UpdatedBefore.Value
	filter.Conditions = item.OrWord(item.Nonempty(r.MyReaction), epic.ReactedTo(filter.Viewer, ""), func(name string) database.Condition {
		return epic.ReactedTo(filter.Viewer, name)
	})
	if r.State != "all" {
		filter.State = epic.State(r.State)
	}
	if r.AuthorID.Set || r.AuthorUsername != "" {
		var authors []types.UID
		if r.AuthorID.Set {
			authors, err = item.UserUIDs(ctx, f.Catalog, r.AuthorID.Value)
		} else {
			authors, err = item.NamedUIDs(ctx, f.Catalog, r.AuthorUsername)
		}
		if err != nil || len(authors) == 0 {
			filter.In = nil // an unknown author has no epics
			return err
		}
		filter.Author = authors[0]
	}
	filter.Labels, err = f.titled(ctx, at, r.Labels)
	return err
}

// titled returns for each title the UIDs of the labels that have it in any of the groups.
func (f *Family) titled(ctx context.Context, at places, titles []string) ([][]types.UID, error) {
	if len(titles) == 0 {
		return nil, nil
	}
	known := map[string][]types.UID{}
	for _, in := range at {
		labels, err := label.All(ctx, f.Catalog, in)
		if err != nil {
			return nil, err
		}
		for _, l := range labels {
			known[l.Spec.Title] = append(known[l.Spec.Title], l.UID)
		}
	}
	all := make([][]types.UID, len(titles))
	for i, title := range titles {
		all[i] = known[title]
	}
	return all, nil
}
