// Package stateevents is the family "Resource state events" of the administration interface document.
package stateevents

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// Family serves the changes of the states of items.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints. Reading requires signing in, even if the project is public (API behaviour, section 2.17).
func (f *Family) Table() endpoint.Table {
	find := item.Finder{Stores: f.Activity}
	return slices.Concat(
		table[auth.ProjectRecord[item.Issue]](f, find.Issues()),
		table[auth.ProjectRecord[item.MergeRequest]](f, find.MergeRequests()),
		table[auth.GroupRecord[item.Epic]](f, find.Epics()),
	)
}

// table returns the endpoints of the events of a kind of items.
func table[S auth.Holder[T], T item.Item](f *Family, k item.Kind[T]) endpoint.Table {
	path := k.Path + "/resource_state_events"
	return endpoint.Table{
		endpoint.Get(path, auth.OnRecord[S](f.list)).Found(k.Find).Needs(k.Read).Asks(k.Asks...).
			Doc("List the changes of the state of " + k.Noun + ", the oldest first."),
		endpoint.Get(path+"/{event_id}", auth.OnRecord[S](f.get)).Found(k.Find).Needs(k.Read).Asks(k.Asks...).
			Doc("Get a change of the state of " + k.Noun + "."),
	}
}

// Event is "Resource state event" of the administration interface document.
type Event struct {
	ID                   int64               `json:"id"`
	User                 *entity.UserSummary `json:"user" doc:"null if the user is gone."`
	CreatedAt            endpoint.Time       `json:"created_at"`
	ResourceType         string              `json:"resource_type" doc:"Issue, MergeRequest or Epic."`
	ResourceID           int64               `json:"resource_id" doc:"Id of the item, which is not its iid."`
	State                stateevent.State    `json:"state" doc:"closed, reopened or merged."`
	SourceCommit         *string             `json:"source_commit" doc:"null: commits do not change states."`
	SourceMergeRequestID *int64              `json:"source_merge_request_id" doc:"Id of the merge request whose merge has closed the issue; otherwise null."`
}

func show(e stateevent.Event, of item.Item, users map[types.UID]*entity.UserSummary) Event {
	shown := Event{
		ID: e.ID, User: users[e.User.UID], CreatedAt: endpoint.Time(e.Created), ResourceType: of.Type(), ResourceID: e.Of.ID, State: e.State,
	}
	if e.MergeRequestID != 0 {
		shown.SourceMergeRequestID = &e.MergeRequestID
	}
	return shown
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, _ auth.Subject, of item.Item, r *listRequest) (endpoint.List[Event], error) {
	skip, limit := r.Window()
	rows, total, err := f.Activity.StateEvents.List(ctx, of.Item(), skip, limit)
	if err != nil {
		return endpoint.List[Event]{}, err
	}
	users := make([]database.User, len(rows))
	for i, e := range rows {
		users[i] = e.User
	}
	known, err := item.Users(ctx, f.Catalog, f.WebURL, users...)
	if err != nil {
		return endpoint.List[Event]{}, err
	}
	return endpoint.Cut(rows, total, func(e stateevent.Event) Event { return show(e, of, known) }), nil
}

type getRequest struct {
	EventID int64 `param:"event_id" doc:"Id of the event."`
}

func (f *Family) get(ctx context.Context, _ auth.Subject, of item.Item, r *getRequest) (Event, error) {
	e, err := f.Activity.StateEvents.Get(ctx, of.Item(), r.EventID)
	if errors.Is(err, stateevent.ErrNotFound) {
		return Event{}, endpoint.NotFound("")
	}
	if err != nil {
		return Event{}, err
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, e.User)
	return show(e, of, users), err
}
