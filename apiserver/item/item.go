// Package item finds the items of the activity database that requests are about: issues, merge requests, epics and notes on them.
package item

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/note"
)

// The maximum numbers of characters of items.
const (
	MaxTitle       = 255
	MaxDescription = 1 << 20
)

// Item is an item that notes, reactions and state events belong to. Families that serve the same collection below several kinds of items, such as
// the reactions to issues and notes, take this interface; see auth.OnRecord.
type Item interface {
	auth.Kept
	auth.Missable
	// Item identifies the item, and Place is the project or group that it is in.
	Item() database.Item
	Place() database.Subject
	// Row is a pointer to the row of the item, for Lock.
	Row() any
	// Type is the kind of the item in the words of the API, such as Issue.
	Type() string
}

// Place returns the project or group of a scope as the subject of rows.
func Place(s catalog.Scope) database.Subject {
	kind := database.KindGroup
	if s.Project != nil {
		kind = database.KindProject
	}
	return database.Subject{Kind: kind, ID: s.RESTID(), UID: s.Target().GetUID()}
}

// Issue is an issue as the record of a request.
type Issue struct{ issue.Issue }

// Parameter implements auth.Kept.
func (Issue) Parameter() string { return "Internal id (iid) of the issue." }

// Owner implements auth.Kept: the author.
func (i Issue) Owner() types.UID { return i.Author.UID }

// Missing implements auth.Missable.
func (Issue) Missing() *endpoint.Error { return endpoint.NotFound("Issue") }

// Place implements Item.
func (i Issue) Place() database.Subject { return i.In }

// Row implements Item.
func (i Issue) Row() any { return &i.Issue }

// Type implements Item.
func (Issue) Type() string { return "Issue" }

// MergeRequest is a merge request as the record of a request.
type MergeRequest struct{ mergerequest.MergeRequest }

// Parameter implements auth.Kept.
func (MergeRequest) Parameter() string { return "Internal id (iid) of the merge request." }

// Owner implements auth.Kept: the author.
func (m MergeRequest) Owner() types.UID { return m.Author.UID }

// Missing implements auth.Missable.
func (MergeRequest) Missing() *endpoint.Error { return endpoint.NotFound("") }

// Place implements Item.
func (m MergeRequest) Place() database.Subject { return m.In }

// Row implements Item.
func (m MergeRequest) Row() any { return &m.MergeRequest }

// Type implements Item.
func (MergeRequest) Type() string { return "MergeRequest" }

// Epic is an epic as the record of a request.
type Epic struct{ epic.Epic }

// Parameter implements auth.Kept.
func (Epic) Parameter() string { return "Id of the epic, not its internal id (iid)." }

// Owner implements auth.Kept: the author.
func (e Epic) Owner() types.UID { return e.Author.UID }

// Missing implements auth.Missable.
func (Epic) Missing() *endpoint.Error { return endpoint.NotFound("Epic") }

// Place implements Item.
func (e Epic) Place() database.Subject { return e.In }

// Row implements Item.
func (e Epic) Row() any { return &e.Epic }

// Type implements Item.
func (Epic) Type() string { return "Epic" }

// Note is a note as the record of a request.
type Note struct{ note.Note }

// Parameter implements auth.Kept.
func (Note) Parameter() string { return "Id of the note." }

// Owner implements auth.Kept: the author.
func (n Note) Owner() types.UID { return n.Author.UID }

// Missing implements auth.Missable.
func (Note) Missing() *endpoint.Error { return endpoint.NotFound("") }

// Place implements Item.
func (n Note) Place() database.Subject { return n.In }

// Row implements Item.
func (n Note) Row() any { return &n.Note }

// Type implements Item.
func (Note) Type() string { return "Note" }

// Finder finds items for endpoint.Found. It answers like for a missing item if the caller must not see the item. The endpoint must ask for
// auth.ReadConfidential or auth.ReadConfidentialEpics.
type Finder struct{ Stores activity.Stores }

// Issue finds an issue of the project by its iid. Only Reporters, its author and its assignees see a confidential one.
func (f Finder) Issue(ctx context.Context, s auth.Subject, iid int64) (Issue, error) {
	found, err := f.Stores.Issues.Get(ctx, s.Scope.Project.UID, iid)
	if errors.Is(err, issue.ErrNotFound) || err == nil && !Sees(s, found) {
		return Issue{}, Issue{}.Missing()
	}
	return Issue{found}, err
}

// Sees reports whether the caller sees an issue of the project of the subject.
func Sees(s auth.Subject, i issue.Issue) bool {
	if !i.Confidential || s.Has(s.Access, auth.ReadConfidential) {
		return true
	}
	u := s.Caller.User
	return u != nil && Issue{i}.People().Have(u.UID)
}

// MergeRequest finds a merge request of the project by its iid.
func (f Finder) MergeRequest(ctx context.Context, s auth.Subject, iid int64) (MergeRequest, error) {
	found, err := f.Stores.MergeRequests.Get(ctx, s.Scope.Project.UID, iid)
	if errors.Is(err, mergerequest.ErrNotFound) {
		return MergeRequest{}, MergeRequest{}.Missing()
	}
	return MergeRequest{found}, err
}

// Epic finds an epic of the group by its id. Only Reporters and its author see a confidential one.
func (f Finder) Epic(ctx context.Context, s auth.Subject, id int64) (Epic, error) {
	found, err := f.Stores.Epics.Get(ctx, s.Scope.Groups[0].UID, id)
	hidden := err == nil && found.Confidential && !s.Has(s.Access, auth.ReadConfidentialEpics) &&
		(s.Caller.User == nil || s.Caller.User.UID != found.Author.UID)
	if errors.Is(err, epic.ErrNotFound) || hidden {
		return Epic{}, Epic{}.Missing()
	}
	return Epic{found}, err
}

// Note finds a note on an item by its id, for auth.Inside. Only Reporters and its author see an internal one.
func (f Finder) Note(ctx context.Context, s auth.Subject, on Item, id int64) (Note, error) {
	found, err := f.Stores.Notes.Get(ctx, on.Item(), id)
	if errors.Is(err, note.ErrNotFound) || err == nil && !SeesNote(s, found) {
		return Note{}, Note{}.Missing()
	}
	return Note{found}, err
}

// SeesNote reports whether the caller sees a note on an item of the subject that the caller sees.
func SeesNote(s auth.Subject, n note.Note) bool {
	return !n.Internal || s.Has(s.Access, auth.ReadConfidential) || s.Has(s.Access, auth.ReadConfidentialEpics) ||
		s.Caller.User != nil && s.Caller.User.UID == n.Author.UID
}
