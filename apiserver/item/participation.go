package item

import (
	"context"
	"net/http"
	"slices"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
)

// Followed is an item that people take part in and follow.
type Followed interface {
	Item
	People() People
}

// People implements Followed: the author and the assignees.
func (i Issue) People() People { return slices.Concat(People{i.Author}, i.Assignees) }

// People implements Followed: the author, the assignees and the reviewers.
func (m MergeRequest) People() People {
	return slices.Concat(People{m.Author}, m.Assignees, m.Reviewers)
}

// Participation has the endpoints about the people who take part in items of a kind. They answer with an item as a D.
type Participation[T Followed, D any] struct {
	Kit *family.Kit
	Kind[T]
	// Involved names the People of an item in summaries, as in "the author, the assignees".
	Involved  string
	Followers Followers
	// Done records for the audit what the caller has done to an item, and shows the item. Beside Asks, it asks for Shows.
	Done  func(ctx context.Context, s auth.ProjectRecord[T], verb string) (D, error)
	Shows []endpoint.Ability
}

// Table lists the endpoints.
func (p Participation[T, D]) Table() endpoint.Table {
	reads := func(e *endpoint.Endpoint) *endpoint.Endpoint { return e.Needs(p.Read).Asks(p.Asks...).Found(p.Find) }
	return endpoint.Table{
		reads(endpoint.Post(p.Path+"/subscribe", p.subscribe)).Asks(p.Shows...).Also(http.StatusNotModified).
			Doc("Subscribe the caller to " + p.Noun + "."),
		reads(endpoint.Post(p.Path+"/unsubscribe", p.unsubscribe)).Asks(p.Shows...).Also(http.StatusNotModified).
			Doc("Unsubscribe the caller from " + p.Noun + "."),
		reads(endpoint.Get(p.Path+"/participants", p.participants)).Anonymous(endpoint.Served).
			Doc("List " + p.Involved + " and the writers of notes of " + p.Noun + "."),
	}
}

func (p Participation[T, D]) subscribe(ctx context.Context, s auth.ProjectRecord[T], _ *endpoint.None) (D, error) {
	return p.follow(ctx, s, "subscribe", true)
}

func (p Participation[T, D]) unsubscribe(ctx context.Context, s auth.ProjectRecord[T], _ *endpoint.None) (D, error) {
	return p.follow(ctx, s, "unsubscribe", false)
}

// follow records the choice of the caller to follow an item, or not to follow it. The error is endpoint.NotModified if nothing changes.
func (p Participation[T, D]) follow(ctx context.Context, s auth.ProjectRecord[T], verb string, on bool) (none D, err error) {
	u, err := s.Caller.Person()
	if err != nil {
		return none, err
	}
	i := s.Record.Item()
	err = p.Kit.Activity.Database.Atomically(ctx, "following "+i.String(), func(ctx context.Context, db bun.IDB) error {
		// The item can be deleted after it was found.
		if err := Lock(ctx, db, s.Record); err != nil {
			return err
		}
		was, err := Subscribed(ctx, p.Kit, s.Subject, p.Followers, i, s.Record.People())
		if err == nil && was == on {
			err = endpoint.NotModified()
		}
		if err != nil {
			return err
		}
		return p.Followers.Subscribe(ctx, i.ID, User(u), on)
	})
	if err != nil {
		return none, err
	}
	return p.Done(ctx, s, verb)
}

type participantsRequest struct{ endpoint.Paging }

// participants lists the people of an item and the writers of its notes. Each is there once, and deleted users are left out.
func (p Participation[T, D]) participants(
	ctx context.Context, s auth.ProjectRecord[T], r *participantsRequest,
) (none endpoint.List[*entity.UserSummary], err error) {
	writers, err := p.Kit.Activity.Notes.Writers(ctx, s.Record.Item())
	if err != nil {
		return none, err
	}
	all := slices.Concat(s.Record.People(), writers)
	users, err := Users(ctx, p.Kit.Catalog, p.Kit.WebURL, all...)
	if err != nil {
		return none, err
	}
	var shown []*entity.UserSummary
	for _, u := range Known(users, all) {
		if !slices.Contains(shown, u) {
			shown = append(shown, u)
		}
	}
	return endpoint.Page(r.Paging, shown, func(u *entity.UserSummary) *entity.UserSummary { return u }), nil
}
