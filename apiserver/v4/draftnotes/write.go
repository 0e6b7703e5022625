package draftnotes

import (
	"context"
	"errors"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/note"
)

type createRequest struct {
	Note       string                              `param:"note" required:"" example:"I can reproduce this." doc:"Text in Markdown, at most 1,000,000 characters."`
	CommitID   string                              `param:"commit_id" doc:"Id of a commit that the note is about."`
	Discussion string                              `param:"in_reply_to_discussion_id" doc:"Discussion that the note is a reply to."`
	Resolve    bool                                `param:"resolve_discussion" default:"false" doc:"Whether the discussion is resolved when the note is published."`
	Position   endpoint.Optional[comment.Position] `param:"position" doc:"Place in the diff. A reply is at the place of its discussion."`
}

func (f *Family) create(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *createRequest) (DraftNote, error) {
	d, err := f.draft(ctx, s, r)
	if err != nil {
		return DraftNote{}, err
	}
	err = f.save(ctx, s.Record, &d, func(ctx context.Context) error { return f.Activity.DraftNotes.Create(ctx, &d) })
	if err != nil {
		return DraftNote{}, err
	}
	did(ctx, "create", d)
	return show(d), nil
}

// save writes a draft note on a merge request, in a transaction, unless it exceeds the limits.
func (f *Family) save(ctx context.Context, on item.MergeRequest, d *draftnote.Draft, write func(context.Context) error) error {
	return answer(f.Activity.Database.Atomically(ctx, "writing a draft note", func(ctx context.Context, db bun.IDB) error {
		if err := write(ctx); err != nil {
			return err
		}
		// After the draft note, as publishing does: two transactions that lock the same rows must do so in the same order.
		if err := item.Lock(ctx, db, on); err != nil {
			return err
		}
		return f.Activity.DraftNotes.CheckLimits(ctx, d.On, d.Author.UID)
	}))
}

// draft returns the draft note of a request, which is not written yet.
func (f *Family) draft(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *createRequest) (d draftnote.Draft, err error) {
	author, err := s.Caller.Person()
	if err == nil {
		err = comment.Admit(s.Subject, s.Record)
	}
	if err == nil {
		err = comment.CheckText(r.Note)
	}
	if err != nil {
		return d, err
	}
	d = draftnote.Draft{In: s.Record.In, On: s.Record.Item(), Author: item.User(author), Body: r.Note, Discussion: r.Discussion, Resolves: r.Resolve}
	if d.Position, err = comment.At(r.Position); err != nil {
		return d, err
	}
	if err := f.checkDiscussion(ctx, s, d); err != nil {
		return d, err
	}
	d.Commit, err = f.commit(ctx, s.Subject, r.CommitID)
	return d, err
}

// noCommit is a word of clients of the REST API for no commit.
const noCommit = "undefined"

// commit returns the id of a commit of the project, which is empty if none is sent.
func (f *Family) commit(ctx context.Context, s auth.Subject, sent string) (string, error) {
	if sent == "" || sent == noCommit {
		return "", nil
	}
	repo, err := f.Repositories.Content(ctx, s.Scope.Project)
	var id string
	if err == nil {
		id, err = refs.Commit(ctx, repo, sent)
	}
	if ref.Missing(err) || err == nil && id != sent {
		return "", refuse("commit_id", "is not the id of a commit of the project")
	}
	return id, err
}

// noDiscussion and notResolvable are the problems of replies, in the words of the REST API.
const (
	noDiscussion  = "Thread to reply to cannot be found"
	notResolvable = "User is not allowed to resolve thread"
)

// checkDiscussion refuses a new draft note that the caller could not publish because of its discussion.
func (f *Family) checkDiscussion(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], d draftnote.Draft) error {
	var first *note.Note
	if d.Discussion != "" {
		found, err := f.Activity.Notes.First(ctx, d.On, d.Discussion)
		if err == nil {
			first = &found
		} else if !errors.Is(err, note.ErrNotFound) {
			return err
		}
	}
	if problem := f.problem(s.Subject, s.Record, d, first); problem != "" {
		return refuse("base", problem)
	}
	return nil
}

// problem returns why the caller cannot publish a draft note, or an empty text. first is the first note of its discussion; nil if there is no such
// discussion.
func (f *Family) problem(s auth.Subject, on item.MergeRequest, d draftnote.Draft, first *note.Note) string {
	switch {
	case d.Discussion == "" && d.Resolves:
		return notResolvable
	case d.Discussion == "":
		return ""
	case first == nil, !item.SeesNote(s, *first):
		return noDiscussion
	case first.System:
		return "Discussion can not be replied to."
	case d.Resolves && (!first.Resolvable || !f.notes.Settles(s, on, *first)):
		return notResolvable
	default:
		return ""
	}
}

// refuse returns the answer for an attribute with a problem.
func refuse(attribute, problem string) error {
	var a endpoint.Attributes
	a.Refuse(attribute, problem)
	return a.Err()
}

type updateRequest struct {
	Note     endpoint.Optional[string]           `param:"note" blank:"refuse" example:"I can reproduce this." doc:"Text in Markdown, at most 1,000,000 characters."`
	Position endpoint.Optional[comment.Position] `param:"position" doc:"Place in the diff."`
}

// update changes a draft note. Without parameters, it changes nothing.
func (f *Family) update(ctx context.Context, s subject, r *updateRequest) (DraftNote, error) {
	var c draftnote.Change
	err := comment.Admit(s.Subject, s.Record.Outer)
	if err == nil && r.Note.Set {
		c.Body = &r.Note.Value
		err = comment.CheckText(r.Note.Value)
	}
	if err == nil {
		c.Position, err = comment.At(r.Position)
	}
	if err != nil {
		return DraftNote{}, err
	}
	if c == (draftnote.Change{}) {
		return f.get(ctx, s, nil)
	}
	d := s.Record.Record.Draft
	err = f.save(ctx, s.Record.Outer, &d, func(ctx context.Context) (err error) {
		d, err = f.Activity.DraftNotes.Update(ctx, d.ID, c)
		return err
	})
	if err != nil {
		return DraftNote{}, err
	}
	did(ctx, "update", d)
	return show(d), nil
}

func (f *Family) remove(ctx context.Context, s subject, _ *endpoint.None) (endpoint.None, error) {
	d := s.Record.Record.Draft
	if err := f.Activity.DraftNotes.Delete(ctx, d.ID); err != nil {
		return endpoint.None{}, answer(err)
	}
	did(ctx, "delete", d)
	return endpoint.None{}, nil
}

// did records a write to a draft note for the audit.
func did(ctx context.Context, verb string, d draftnote.Draft) {
	audit.From(ctx).Did(verb, audit.DraftNote, "on "+d.On.String(), d.ID)
}
