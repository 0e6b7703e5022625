// Package reactions is the family "Emoji reactions" of the core interface document.
package reactions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// Family serves the reactions to items.
type Family struct {
	family.Kit
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k} }

// Table lists the endpoints (API behaviour, section 2.9).
func (f *Family) Table() endpoint.Table {
	find := item.Finder{Stores: f.Activity}
	return slices.Concat(inProject(f, find.Issues()), inProject(f, find.MergeRequests()), inGroup(f, find.Epics()))
}

// noted is a note on an item.
type noted[T item.Item] = auth.In[T, item.Note]

// inProject returns the endpoints of the reactions to a kind of items, and to the notes on them.
func inProject[T item.Item](f *Family, k item.Kind[T]) endpoint.Table {
	return append(
		table[auth.ProjectRecord[T], auth.ProjectRecord[auth.In[T, given]]](f, k.Path, k.Noun, k.Find, k.Read, k.Asks...),
		onNotes[auth.ProjectRecord[noted[T]], auth.ProjectRecord[auth.In[noted[T], given]]](f, k)...)
}

// inGroup is inProject for items of groups.
func inGroup[T item.Item](f *Family, k item.Kind[T]) endpoint.Table {
	return append(
		table[auth.GroupRecord[T], auth.GroupRecord[auth.In[T, given]]](f, k.Path, k.Noun, k.Find, k.Read, k.Asks...),
		onNotes[auth.GroupRecord[noted[T]], auth.GroupRecord[auth.In[noted[T], given]]](f, k)...)
}

func onNotes[S auth.Holder[noted[T]], R auth.Holder[auth.In[noted[T], given]], T item.Item](f *Family, k item.Kind[T]) endpoint.Table {
	note := auth.Inside[T](k.Find, item.Finder{Stores: f.Activity}.Note)
	return table[S, R](f, k.Path+"/notes/{note_id}", "a note on "+k.Noun, note, k.Read, k.Internal)
}

// table returns the endpoints of the reactions to the items at a path. The ability allows seeing the items; find asks for the others.
func table[S auth.Holder[P], R auth.Holder[auth.In[P, given]], P auth.Kept, O auth.Find[P] | auth.Nested[P]](
	f *Family, path, of string, find O, see endpoint.Ability, asks ...endpoint.Ability,
) endpoint.Table {
	path += "/award_emoji"
	one := path + "/{award_id}"
	return endpoint.Table{
		endpoint.Get(path, auth.OnRecord[S](f.list)).Found(find).Needs(see).Asks(asks...).Anonymous(endpoint.Served).
			Doc("List the emoji reactions to " + of + ", the oldest first."),
		endpoint.Get(one, auth.OnRecord[R](f.get)).Found(auth.Inside[P](find, f.find)).Needs(see).Asks(asks...).Anonymous(endpoint.Served).
			Doc("Get an emoji reaction to " + of + "."),
		endpoint.Post(path, auth.OnRecord[S](f.create)).Found(find).Needs(see).Asks(asks...).Anonymous(endpoint.Challenged).
			Doc("Create an emoji reaction to " + of + "."),
		endpoint.Delete(one, auth.OnRecord[R](f.remove)).Found(auth.Inside[P](find, f.find)).Asks(asks...).Conditional().
			Needs(auth.AdminInstance).Or(auth.Own).Denies(endpoint.Unauthorized("")).Anonymous(endpoint.Challenged).
			Doc("Delete the caller's emoji reaction to " + of + ". Administrators can delete any."),
	}
}

// given is a reaction as the record of a request.
type given struct {
	reaction.Reaction
	to item.Item
}

// Parameter implements auth.Kept.
func (given) Parameter() string { return "Id of the reaction." }

// Owner implements auth.Kept.
func (g given) Owner() types.UID { return g.User.UID }

// find finds a reaction to an item, for auth.Inside.
func (f *Family) find(ctx context.Context, _ auth.Subject, to item.Item, id int64) (given, error) {
	r, err := f.Activity.Reactions.Get(ctx, to.Item(), id)
	if errors.Is(err, reaction.ErrNotFound) {
		err = endpoint.NotFound("")
	}
	return given{r, to}, err
}

type listRequest struct {
	endpoint.Paging
}

func (f *Family) list(ctx context.Context, _ auth.Subject, to item.Item, r *listRequest) (endpoint.List[Reaction], error) {
	skip, limit := r.Window()
	rows, total, err := f.Activity.Reactions.List(ctx, to.Item(), skip, limit)
	if err != nil {
		return endpoint.List[Reaction]{}, err
	}
	users := make([]database.User, len(rows))
	for i, r := range rows {
		users[i] = r.User
	}
	known, err := item.Users(ctx, f.Catalog, f.WebURL, users...)
	if err != nil {
		return endpoint.List[Reaction]{}, err
	}
	return endpoint.Cut(rows, total, func(r reaction.Reaction) Reaction { return show(given{r, to}, known) }), nil
}

func (f *Family) get(ctx context.Context, _ auth.Subject, g given, _ *endpoint.None) (Reaction, error) {
	return f.shown(ctx, g)
}

type createRequest struct {
	Name string `param:"name" required:"" example:"thumbsup" doc:"Name of an emoji, without colons. Aliases, such as +1, stand for the name."`
}

func (f *Family) create(ctx context.Context, s auth.Subject, to item.Item, r *createRequest) (Reaction, error) {
	if n, is := to.(item.Note); is && n.System {
		return Reaction{}, endpoint.NotFound("Award Emoji")
	}
	u, err := s.Caller.Person()
	if err != nil {
		return Reaction{}, err
	}
	name, known := reaction.Emoji(r.Name)
	if !known {
		return Reaction{}, endpoint.NotFound("Award Emoji Name is not a valid emoji name")
	}
	g := given{reaction.Reaction{In: to.Place(), To: to.Item(), Name: name, User: item.User(u)}, to}
	err = f.Activity.Database.Atomically(ctx, "reacting to "+g.To.String(), func(ctx context.Context, db bun.IDB) error {
		// The item can be deleted after it was found.
		if err := item.Lock(ctx, db, to); err != nil {
			return err
		}
		return f.Activity.Reactions.Add(ctx, &g.Reaction)
	})
	if errors.Is(err, reaction.ErrTaken) {
		err = endpoint.NotFound("Award Emoji Name has already been taken")
	}
	if err != nil {
		return Reaction{}, err
	}
	g.did(ctx, "create")
	return f.shown(ctx, g)
}

func (f *Family) remove(ctx context.Context, _ auth.Subject, g given, _ *endpoint.None) (endpoint.None, error) {
	// The dates of HTTP have no fractions of a second.
	if since := endpoint.UnmodifiedSince(ctx); !since.IsZero() && g.Created.Truncate(time.Second).After(since) {
		return endpoint.None{}, endpoint.PreconditionFailed()
	}
	err := f.Activity.Reactions.Delete(ctx, g.ID)
	if errors.Is(err, reaction.ErrNotFound) {
		err = endpoint.NotFound("")
	}
	if err == nil {
		g.did(ctx, "delete")
	}
	return endpoint.None{}, err
}

// did records a write to a reaction for the audit.
func (g given) did(ctx context.Context, verb string) {
	audit.From(ctx).Did(verb, audit.Reaction, fmt.Sprintf("%s to %s", g.Name, g.To), g.ID)
}
