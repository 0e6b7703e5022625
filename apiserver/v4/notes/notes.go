// Package notes is the family of notes on issues, merge requests and epics, and of the discussions that notes form.
package notes

import (
	"context"
	"slices"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/note"
)

// Family serves notes and discussions.
type Family struct {
	family.Kit
	find item.Finder
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k, item.Finder{Stores: k.Activity}} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return slices.Concat(
		table[auth.ProjectRecord[item.Issue]](f.find.Issues(), collection{
			Family: f, write: auth.CreateIssues, moderate: auth.ModerateNotes, date: auth.OwnProject, Writer: comment.InProjects(f.Activity, f.Clock),
		}),
		table[auth.ProjectRecord[item.MergeRequest]](f.find.MergeRequests(), collection{
			Family: f, write: auth.NoteMergeRequests, moderate: auth.ModerateNotes, date: auth.OwnProject, diff: true,
			Writer: comment.InProjects(f.Activity, f.Clock),
		}),
		table[auth.GroupRecord[item.Epic]](f.find.Epics(), collection{
			Family: f, write: auth.CreateEpicNotes, moderate: auth.ModerateEpicNotes, date: auth.AdminGroup, Writer: comment.Writer{
				Stores: f.Activity, Clock: f.Clock, Internal: auth.ReadConfidentialEpics, Resolve: auth.ModerateEpicNotes,
			},
		}))
}

// collection serves the notes on one kind of items.
type collection struct {
	*Family
	comment.Writer
	// The abilities: to write notes, to change and remove those of others, and to say when a note was written.
	write, moderate, date endpoint.Ability
	// diff says that the items have a diff, which discussions can be about.
	diff bool
}

func table[S auth.Holder[T], T item.Item](k item.Kind[T], c collection) endpoint.Table {
	const one, thread, inThread = "/notes/{note_id}", "/discussions/{discussion_id}", "/discussions/{discussion_id}/notes/{note_id}"
	reads := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Found(k.Find).Needs(k.Read).Asks(c.Internal).Anonymous(endpoint.Served)
	}
	writes := func(e *endpoint.Endpoint, asks ...endpoint.Ability) *endpoint.Endpoint {
		return e.Found(k.Find).Needs(c.write).Asks(c.Internal).Asks(asks...).Anonymous(endpoint.Challenged)
	}
	begin := endpoint.Post(k.Path+"/discussions", auth.OnRecord[S](c.begin))
	if c.diff {
		begin = endpoint.Post(k.Path+"/discussions", auth.OnRecord[S](c.beginAt))
	}
	return endpoint.Table{
		reads(endpoint.Get(k.Path+"/notes", auth.OnRecord[S](c.list))).Doc("List the notes on " + k.Noun + "."),
		writes(endpoint.Post(k.Path+"/notes", auth.OnRecord[S](c.create)), c.date).Doc("Create a note on " + k.Noun + "."),
		reads(endpoint.Get(k.Path+one, auth.OnRecord[S](c.get))).Doc("Get a note on " + k.Noun + "."),
		writes(endpoint.Put(k.Path+one, auth.OnRecord[S](c.update)), c.moderate).Doc("Update a note on " + k.Noun + "."),
		writes(endpoint.Delete(k.Path+one, auth.OnRecord[S](c.remove)), c.moderate).Doc("Delete a note on " + k.Noun + "."),
		reads(endpoint.Get(k.Path+"/discussions", auth.OnRecord[S](c.discussions))).Doc("List the discussions on " + k.Noun + "."),
		writes(begin, c.date).Doc("Create a discussion on " + k.Noun + "."),
		reads(endpoint.Get(k.Path+thread, auth.OnRecord[S](c.discussion))).Doc("Get a discussion on " + k.Noun + "."),
		writes(endpoint.Put(k.Path+thread, auth.OnRecord[S](c.settle)), c.Resolve).Doc("Resolve a discussion on " + k.Noun + ", or make it unresolved again."),
		writes(endpoint.Post(k.Path+thread+"/notes", auth.OnRecord[S](c.reply)), c.date).Doc("Create a note in a discussion on " + k.Noun + "."),
		writes(endpoint.Put(k.Path+inThread, auth.OnRecord[S](c.updateInDiscussion)), c.moderate, c.Resolve).
			Doc("Update a note of a discussion on " + k.Noun + ", or resolve the discussion."),
		writes(endpoint.Delete(k.Path+inThread, auth.OnRecord[S](c.removeFromDiscussion)), c.moderate).Doc("Delete a note of a discussion on " + k.Noun + "."),
	}
}

type listRequest struct {
	endpoint.Paging
	OrderBy string `param:"order_by" values:"created_at,updated_at" default:"created_at" doc:"Time by which the notes are sorted."`
	Sort    string `param:"sort" values:"asc,desc" default:"desc" doc:"asc for the oldest first."`
	Filter  string `param:"activity_filter" values:"all_notes,only_comments,only_activity" default:"all_notes" doc:"only_comments leaves out system notes, and only_activity all others."`
}

var filters = map[string]note.Kinds{"only_comments": note.Written, "only_activity": note.System}

func (c collection) list(ctx context.Context, s auth.Subject, on item.Discussed, r *listRequest) (endpoint.List[Note], error) {
	q := note.Query{Reader: c.Reader(s), Kinds: filters[r.Filter], ByUpdate: r.OrderBy == "updated_at", Ascending: r.Sort == "asc"}
	q.Skip, q.Limit = r.Window()
	some, total, err := c.Activity.Notes.List(ctx, on.Item(), q)
	if err != nil {
		return endpoint.List[Note]{}, err
	}
	v, err := c.view(ctx, s, on, some)
	return endpoint.Cut(some, total, v.note), err
}

type noteRequest struct {
	NoteID int64 `param:"note_id" doc:"Id of the note."`
}

func (c collection) get(ctx context.Context, s auth.Subject, on item.Discussed, r *noteRequest) (Note, error) {
	n, err := c.find.Note(ctx, s, on, r.NoteID)
	if err != nil {
		return Note{}, err
	}
	return c.show(ctx, s, on, n.Note)
}

// text has the parameters of every new note.
type text struct {
	Body      string                       `param:"body" required:"" example:"I can reproduce this." doc:"Text in Markdown, at most 1,000,000 characters."`
	CreatedAt endpoint.Optional[time.Time] `param:"created_at" doc:"When the note was written, if administrators and owners import it. Ignored for others."`
}

type createRequest struct {
	text
	Internal     bool `param:"internal" doc:"Whether only members with the role Reporter see the note."`
	Confidential bool `param:"confidential" doc:"Deprecated in favour of internal."`
}

func (c collection) create(ctx context.Context, s auth.Subject, on item.Discussed, r *createRequest) (Note, error) {
	n, err := c.add(ctx, s, on, r, true, nil)
	if err != nil {
		return Note{}, err
	}
	return c.show(ctx, s, on, n)
}

type updateRequest struct {
	NoteID int64  `param:"note_id" doc:"Id of the note."`
	Body   string `param:"body" required:"" blank:"refuse" example:"I can reproduce this." doc:"Text in Markdown, at most 1,000,000 characters."`
}

func (c collection) update(ctx context.Context, s auth.Subject, on item.Discussed, r *updateRequest) (Note, error) {
	n, err := c.find.Note(ctx, s, on, r.NoteID)
	if err != nil {
		return Note{}, err
	}
	return c.rewrite(ctx, s, on, n, r.Body)
}

func (c collection) remove(ctx context.Context, s auth.Subject, on item.Discussed, r *noteRequest) (endpoint.None, error) {
	n, err := c.find.Note(ctx, s, on, r.NoteID)
	if err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, c.discard(ctx, s, on, n)
}
