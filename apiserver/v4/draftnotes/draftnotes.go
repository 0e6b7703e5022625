// Package draftnotes is the family "Draft notes on merge requests" of the core interface document.
package draftnotes

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/note"
)

// Family serves the draft notes on merge requests.
type Family struct {
	family.Kit
	notes comment.Writer
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k, comment.InProjects(k.Activity, k.Clock)} }

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	const all = "/projects/{id}/merge_requests/{merge_request_iid}/draft_notes"
	const one = all + "/{draft_note_id}"
	mergeRequest := item.Finder{Stores: f.Activity}.MergeRequest
	own := auth.Inside[item.MergeRequest](mergeRequest, f.find)
	return endpoint.Table{
		endpoint.Get(all, f.list).Found(mergeRequest).Needs(auth.ReadMergeRequests).
			Doc("List your draft notes on a merge request: all of them, unless a page is requested."),
		endpoint.Post(all, f.create).Found(mergeRequest).Needs(auth.NoteMergeRequests).Asks(auth.ReadConfidential, auth.ResolveDiscussions).
			Doc("Create a draft note on a merge request. Only you see it until you publish it."),
		endpoint.Get(one, f.get).Found(own).Needs(auth.ReadMergeRequests).And(auth.Private).
			Doc("Get a draft note on a merge request."),
		endpoint.Put(one, f.update).Found(own).Needs(auth.NoteMergeRequests).And(auth.Private).
			Doc("Update a draft note on a merge request."),
		endpoint.Delete(one, f.remove).Found(own).Needs(auth.NoteMergeRequests).And(auth.Private).
			Doc("Delete a draft note on a merge request."),
		endpoint.Put(one+"/publish", f.publish).Found(own).Needs(auth.NoteMergeRequests).And(auth.Private).
			Asks(auth.ReadConfidential, auth.ResolveDiscussions).Status(http.StatusNoContent).
			Doc("Publish a draft note on a merge request."),
		endpoint.Post(all+"/bulk_publish", f.publishAll).Found(mergeRequest).Needs(auth.NoteMergeRequests).
			Asks(auth.ReadConfidential, auth.ResolveDiscussions).Status(http.StatusNoContent).
			Doc("Publish all your draft notes on a merge request."),
	}
}

// record is a draft note as the record of a request.
type record struct{ draftnote.Draft }

// Parameter implements auth.Kept.
func (record) Parameter() string { return "Id of the draft note." }

// Owner implements auth.Kept: the author.
func (r record) Owner() types.UID { return r.Author.UID }

// Missing implements auth.Missable.
func (record) Missing() *endpoint.Error { return endpoint.NotFound("") }

// subject is the form of endpoints about one draft note.
type subject = auth.ProjectRecord[auth.In[item.MergeRequest, record]]

// find finds a draft note on a merge request, for auth.Inside.
func (f *Family) find(ctx context.Context, _ auth.Subject, on item.MergeRequest, id int64) (record, error) {
	d, err := f.Activity.DraftNotes.Get(ctx, on.Item(), id)
	return record{d}, answer(err)
}

// answer returns the answer if a draft note does not exist or a limit is reached, and otherwise err.
func answer(err error) error {
	switch {
	case errors.Is(err, draftnote.ErrNotFound):
		return record{}.Missing()
	case errors.Is(err, draftnote.ErrTooMany):
		return refuse("draft_notes", fmt.Sprintf("are too many (maximum is %d)", draftnote.Most))
	case errors.Is(err, draftnote.ErrTooLong):
		return refuse("draft_notes", fmt.Sprintf("are too long (maximum is %d bytes)", draftnote.MaxSize))
	default:
		return err
	}
}

// DraftNote is a draft note on a merge request.
type DraftNote struct {
	ID                int64          `json:"id"`
	AuthorID          int64          `json:"author_id"`
	MergeRequestID    int64          `json:"merge_request_id" doc:"Id of the merge request, not its iid."`
	ResolveDiscussion bool           `json:"resolve_discussion" doc:"Whether the discussion is resolved when the note is published."`
	DiscussionID      *string        `json:"discussion_id" doc:"Discussion that the note is a reply to; null for none."`
	Note              string         `json:"note"`
	CommitID          *string        `json:"commit_id" doc:"Commit that the note is about; null for none."`
	LineCode          *string        `json:"line_code" doc:"Identifier of the line; null unless the position is in a text."`
	Position          *note.Position `json:"position" doc:"Place in the diff; null for none."`
}

func show(d draftnote.Draft) DraftNote {
	shown := DraftNote{
		ID: d.ID, AuthorID: d.Author.ID, MergeRequestID: d.On.ID, ResolveDiscussion: d.Resolves, DiscussionID: nonempty(d.Discussion), Note: d.Body,
		CommitID: nonempty(d.Commit), Position: d.Position,
	}
	if d.Position != nil {
		shown.LineCode = nonempty(d.Position.LineCode())
	}
	return shown
}

// nonempty returns a text, or nil for an empty one.
func nonempty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type listRequest struct {
	endpoint.PagingIfSent
}

func (f *Family) list(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *listRequest) (endpoint.List[DraftNote], error) {
	all, err := f.Activity.DraftNotes.List(ctx, s.Record.Item(), item.Viewer(s.Subject))
	return endpoint.PageIfSent(r.PagingIfSent, all, show), err
}

func (f *Family) get(_ context.Context, s subject, _ *endpoint.None) (DraftNote, error) {
	return show(s.Record.Record.Draft), nil
}
