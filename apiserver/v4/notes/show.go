package notes

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
)

// Note is a note on an item.
type Note struct {
	ID              int64               `json:"id"`
	Type            *string             `json:"type" doc:"DiscussionNote for a note of a discussion, DiffNote if it is about a place in a diff, and null for an individual one."`
	Body            string              `json:"body"`
	Attachment      *string             `json:"attachment" doc:"Always null."`
	Author          *entity.UserSummary `json:"author" doc:"null if the user is gone."`
	CreatedAt       endpoint.Time       `json:"created_at"`
	UpdatedAt       endpoint.Time       `json:"updated_at"`
	System          bool                `json:"system" doc:"Whether the note records a change of the item."`
	NoteableID      int64               `json:"noteable_id"`
	NoteableType    string              `json:"noteable_type" doc:"Issue, MergeRequest or Epic."`
	ProjectID       *int64              `json:"project_id" doc:"null for an item of a group."`
	NoteableIID     int64               `json:"noteable_iid"`
	Resolvable      bool                `json:"resolvable"`
	Resolved        bool                `json:"resolved"`
	ResolvedBy      *entity.UserSummary `json:"resolved_by"`
	ResolvedAt      endpoint.Time       `json:"resolved_at"`
	Confidential    bool                `json:"confidential" doc:"Deprecated in favour of internal."`
	Internal        bool                `json:"internal" doc:"Whether only members with the role Reporter see the note."`
	CommandsChanges struct{}            `json:"commands_changes"`
	Position        *note.Position      `json:"position,omitempty" doc:"Place in the diff; absent unless the type is DiffNote."`
	LineCode        string              `json:"line_code,omitempty" doc:"Identifier of the line; absent unless the position is in a text."`
	CommitID        string              `json:"commit_id,omitempty" doc:"Commit that the note is about; absent for none."`
	Imported        bool                `json:"imported"`
}

// Discussion is a note with the replies to it.
type Discussion struct {
	ID             string `json:"id"`
	IndividualNote bool   `json:"individual_note" doc:"Whether it is a single note without replies."`
	Notes          []Note `json:"notes"`
}

// view shows notes on an item.
type view struct {
	on      item.Discussed
	project *int64
	users   map[types.UID]*entity.UserSummary
}

// view returns a view for the given notes.
func (c collection) view(ctx context.Context, s auth.Subject, on item.Discussed, discussions ...[]note.Note) (view, error) {
	var users []database.User
	for _, notes := range discussions {
		for _, n := range notes {
			users = append(users, n.Author, n.Resolver)
		}
	}
	v := view{on: on}
	if s.Scope.Project != nil {
		id := s.Scope.RESTID()
		v.project = &id
	}
	var err error
	v.users, err = item.Users(ctx, c.Catalog, c.WebURL, users...)
	return v, err
}

func (c collection) show(ctx context.Context, s auth.Subject, on item.Discussed, n note.Note) (Note, error) {
	v, err := c.view(ctx, s, on, []note.Note{n})
	return v.note(n), err
}

func (v view) note(n note.Note) Note {
	shown := Note{
		ID: n.ID, Body: n.Body, Author: v.users[n.Author.UID], CreatedAt: endpoint.Time(n.Created), UpdatedAt: endpoint.Time(n.Updated), System: n.System,
		NoteableID: v.on.Item().ID, NoteableType: v.on.Type(), ProjectID: v.project, NoteableIID: v.on.Number(),
		Resolvable: n.Resolvable, Resolved: !n.ResolvedAt.IsZero(), ResolvedBy: v.users[n.Resolver.UID], ResolvedAt: endpoint.Time(n.ResolvedAt),
		Confidential: n.Internal, Internal: n.Internal, CommitID: n.Commit,
	}
	if !n.Individual {
		kind := "DiscussionNote"
		if n.Position != nil {
			kind, shown.Position, shown.LineCode = "DiffNote", n.Position, n.Position.LineCode()
		}
		shown.Type = &kind
	}
	return shown
}

// discussion shows a discussion that has at least one note.
func (v view) discussion(notes []note.Note) Discussion {
	d := Discussion{ID: notes[0].Discussion, IndividualNote: notes[0].Individual, Notes: make([]Note, len(notes))}
	for i, n := range notes {
		d.Notes[i] = v.note(n)
	}
	return d
}
