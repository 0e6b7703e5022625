// Package comment has what the families share that write notes on items.
package comment

import (
	"context"
	"errors"
	"strings"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/activity"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/role"
)

// maxText is the maximum number of characters of a note.
const maxText = 1_000_000

// CheckText returns the problems of the text of a note.
func CheckText(text string) error {
	var a endpoint.Attributes
	if strings.TrimSpace(text) == "" {
		a.Refuse("note", "can't be blank")
	}
	a.Text("note", text, maxText)
	return a.Err()
}

// Admit refuses callers who are not members if the item is locked.
func Admit(s auth.Subject, on item.Discussed) error {
	if on.Locked() && s.Access.Role < role.Guest {
		return endpoint.Forbidden("").Describe("The discussion is locked: only members can take part.")
	}
	return nil
}

// Did records a write to a note for the audit.
func Did(ctx context.Context, verb string, on item.Discussed, id int64) {
	audit.From(ctx).Did(verb, audit.Note, "on "+on.Item().String(), id)
}

// Writer writes the notes on one kind of items.
type Writer struct {
	Stores activity.Stores
	Clock  clock.PassiveClock
	// Internal is the ability to read and write internal notes, and Resolve the ability to resolve discussions of others.
	Internal, Resolve endpoint.Ability
}

// InProjects returns the Writer of notes on issues and merge requests. The endpoints must ask for auth.ReadConfidential, and those that resolve
// discussions for auth.ResolveDiscussions.
func InProjects(s activity.Stores, c clock.PassiveClock) Writer {
	return Writer{Stores: s, Clock: c, Internal: auth.ReadConfidential, Resolve: auth.ResolveDiscussions}
}

// Reader returns the caller as a reader of notes.
func (w Writer) Reader(s auth.Subject) note.Reader {
	return note.Reader{Internal: s.Has(s.Access, w.Internal), User: item.Viewer(s)}
}

// Settles reports whether the caller can resolve a discussion, which is given by its first note. The author of the item and the author of the first
// note can.
func (w Writer) Settles(s auth.Subject, on item.Discussed, first note.Note) bool {
	caller := item.Viewer(s)
	return caller == on.Owner() || caller == first.Author.UID || s.Has(s.Access, w.Resolve)
}

// Together makes a change of the notes on an item, and touches the item, in one transaction.
func (w Writer) Together(ctx context.Context, on item.Discussed, attempt string, change func(context.Context) error) error {
	err := w.Stores.Database.Atomically(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := change(ctx); err != nil {
			return err
		}
		// Last, as in the deletion of an item: two transactions that lock the same rows must do so in the same order.
		return item.Touch(ctx, db, on, w.Clock.Now())
	})
	if errors.Is(err, note.ErrFull) {
		return endpoint.Invalid(map[string][]string{"base": {"Maximum number of comments exceeded"}})
	}
	return err
}
