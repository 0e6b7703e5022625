package notes

import (
	"context"
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/note"
)

type discussionsRequest struct {
	endpoint.Paging
}

func (c collection) discussions(ctx context.Context, s auth.Subject, on item.Discussed, r *discussionsRequest) (endpoint.List[Discussion], error) {
	skip, limit := r.Window()
	some, total, err := c.Activity.Notes.Discussions(ctx, on.Item(), c.Reader(s), skip, limit)
	if err != nil {
		return endpoint.List[Discussion]{}, err
	}
	v, err := c.view(ctx, s, on, some...)
	return endpoint.Cut(some, total, v.discussion), err
}

type discussionRequest struct {
	DiscussionID string `param:"discussion_id" doc:"Id of the discussion."`
}

func (c collection) discussion(ctx context.Context, s auth.Subject, on item.Discussed, r *discussionRequest) (Discussion, error) {
	notes, err := c.notes(ctx, s, on, r.DiscussionID)
	if err != nil {
		return Discussion{}, err
	}
	v, err := c.view(ctx, s, on, notes)
	return v.discussion(notes), err
}

// notes returns the notes of a discussion that the caller sees. There is at least one.
func (c collection) notes(ctx context.Context, s auth.Subject, on item.Discussed, discussion string) ([]note.Note, error) {
	notes, err := c.Activity.Notes.Discussion(ctx, on.Item(), c.Reader(s), discussion)
	return notes, answer(err)
}

// answer returns the answer for an error of a discussion.
func answer(err error) error {
	switch {
	case errors.Is(err, note.ErrNotFound):
		return endpoint.NotFound("Discussion")
	case errors.Is(err, note.ErrSystem):
		return endpoint.BadRequest("Discussion can not be replied to.")
	default:
		return err
	}
}

// begin creates a discussion.
func (c collection) begin(ctx context.Context, s auth.Subject, on item.Discussed, r *createRequest) (Discussion, error) {
	return c.start(ctx, s, on, r, nil)
}

type beginAtRequest struct {
	createRequest
	Position endpoint.Optional[comment.Position] `param:"position" doc:"Place in the diff; without it the discussion is about the whole merge request."`
}

// beginAt creates a discussion, which can be about a place in the diff.
func (c collection) beginAt(ctx context.Context, s auth.Subject, on item.Discussed, r *beginAtRequest) (Discussion, error) {
	at, err := comment.At(r.Position)
	if err != nil {
		return Discussion{}, err
	}
	return c.start(ctx, s, on, &r.createRequest, at)
}

// start creates a discussion about a place in a diff, or about the whole item if the position is nil.
func (c collection) start(ctx context.Context, s auth.Subject, on item.Discussed, r *createRequest, at *note.Position) (Discussion, error) {
	n, err := c.add(ctx, s, on, r, false, at)
	if err != nil {
		return Discussion{}, err
	}
	v, err := c.view(ctx, s, on, []note.Note{n})
	return v.discussion([]note.Note{n}), err
}

type replyRequest struct {
	DiscussionID string `param:"discussion_id" doc:"Id of the discussion."`
	text
}

// reply adds a note to a discussion.
func (c collection) reply(ctx context.Context, s auth.Subject, on item.Discussed, r *replyRequest) (Note, error) {
	if _, err := c.notes(ctx, s, on, r.DiscussionID); err != nil {
		return Note{}, err
	}
	n, err := c.draft(s, on, r.text)
	if err != nil {
		return Note{}, err
	}
	n.Discussion, n.Resolvable = r.DiscussionID, on.Resolvable()
	if err := c.Together(ctx, on, "replying to a note", func(ctx context.Context) error { return c.Activity.Notes.Reply(ctx, &n) }); err != nil {
		return Note{}, answer(err)
	}
	comment.Did(ctx, "create", on, n.ID)
	return c.show(ctx, s, on, n)
}

type settleRequest struct {
	DiscussionID string `param:"discussion_id" doc:"Id of the discussion."`
	Resolved     bool   `param:"resolved" required:"" example:"true" doc:"Whether the discussion is resolved."`
}

// settle resolves a discussion, or makes it unresolved again.
func (c collection) settle(ctx context.Context, s auth.Subject, on item.Discussed, r *settleRequest) (Discussion, error) {
	notes, err := c.notes(ctx, s, on, r.DiscussionID)
	if err != nil {
		return Discussion{}, err
	}
	if !notes[0].Resolvable {
		return Discussion{}, endpoint.Forbidden("").Describe("This discussion cannot be resolved.")
	}
	if err := c.resolves(ctx, s, on, notes, r.Resolved); err != nil {
		return Discussion{}, err
	}
	return c.discussion(ctx, s, on, &discussionRequest{r.DiscussionID})
}

// resolves resolves a discussion, or makes it unresolved again.
func (c collection) resolves(ctx context.Context, s auth.Subject, on item.Discussed, discussion []note.Note, resolved bool) error {
	first := discussion[0]
	u, err := s.Caller.Person()
	if err == nil {
		err = comment.Admit(s, on)
	}
	if err != nil {
		return err
	}
	if !c.Settles(s, on, first) {
		return endpoint.Forbidden("").Describe("Others' discussions need the role Developer.")
	}
	by := database.User{}
	if resolved {
		by = item.User(u)
	}
	err = c.Together(ctx, on, "resolving a discussion", func(ctx context.Context) error {
		return c.Activity.Notes.Resolve(ctx, on.Item(), first.Discussion, by)
	})
	if err != nil {
		return err
	}
	comment.Did(ctx, "update", on, first.ID)
	return nil
}

type noteInDiscussionRequest struct {
	DiscussionID string `param:"discussion_id" doc:"Id of the discussion."`
	NoteID       int64  `param:"note_id" doc:"Id of the note."`
}

type updateInDiscussionRequest struct {
	noteInDiscussionRequest
	Body     endpoint.Optional[string] `param:"body" exactlyOne:"change" blank:"refuse" example:"I can reproduce this." doc:"Text in Markdown, at most 1,000,000 characters."`
	Resolved endpoint.Optional[bool]   `param:"resolved" exactlyOne:"change" doc:"Whether the discussion is resolved."`
}

func (c collection) updateInDiscussion(ctx context.Context, s auth.Subject, on item.Discussed, r *updateInDiscussionRequest) (Note, error) {
	n, err := c.inDiscussion(ctx, s, on, r.noteInDiscussionRequest)
	if err != nil {
		return Note{}, err
	}
	if !r.Resolved.Set {
		return c.rewrite(ctx, s, on, n, r.Body.Value)
	}
	if !n.Resolvable {
		return Note{}, endpoint.BadRequest("Note is not resolvable")
	}
	discussion, err := c.notes(ctx, s, on, r.DiscussionID)
	if err == nil {
		err = c.resolves(ctx, s, on, discussion, r.Resolved.Value)
	}
	if err != nil {
		return Note{}, err
	}
	return c.get(ctx, s, on, &noteRequest{n.ID})
}

func (c collection) removeFromDiscussion(ctx context.Context, s auth.Subject, on item.Discussed, r *noteInDiscussionRequest) (endpoint.None, error) {
	n, err := c.inDiscussion(ctx, s, on, *r)
	if err != nil {
		return endpoint.None{}, err
	}
	return endpoint.None{}, c.discard(ctx, s, on, n)
}

// inDiscussion returns a note of a discussion that the caller sees.
func (c collection) inDiscussion(ctx context.Context, s auth.Subject, on item.Discussed, r noteInDiscussionRequest) (item.Note, error) {
	n, err := c.find.Note(ctx, s, on, r.NoteID)
	if err == nil && n.Discussion != r.DiscussionID {
		err = n.Missing()
	}
	return n, err
}
