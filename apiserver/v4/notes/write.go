package notes

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/note"
)

// draft returns a note of the caller on an item that is not written yet.
func (c collection) draft(s auth.Subject, on item.Discussed, t text) (note.Note, error) {
	author, err := s.Caller.Person()
	if err == nil {
		err = comment.Admit(s, on)
	}
	if err == nil {
		err = comment.CheckText(t.Body)
	}
	if err != nil {
		return note.Note{}, err
	}
	n := note.Note{In: on.Place(), On: on.Item(), Body: t.Body, Author: item.User(author)}
	if s.Has(s.Access, c.date) && t.CreatedAt.Set {
		n.Created = t.CreatedAt.Value.UTC()
		if n.Created.After(c.Clock.Now()) || n.Created.Year() < 1 {
			return n, endpoint.Parameters("created_at is invalid").Describe("created_at must not be in the future.")
		}
	}
	return n, nil
}

// add writes a note that is individual, or that begins a discussion. Its position can be nil.
func (c collection) add(ctx context.Context, s auth.Subject, on item.Discussed, r *createRequest, individual bool, at *note.Position) (note.Note, error) {
	n, err := c.draft(s, on, r.text)
	if err != nil {
		return n, err
	}
	n.Position = at
	n.Individual, n.Resolvable, n.Internal = individual, !individual && on.Resolvable(), r.Internal || r.Confidential
	if n.Internal && !s.Has(s.Access, c.Internal) {
		return n, endpoint.Forbidden("").Describe("Internal notes need the role Reporter.")
	}
	if err := c.Together(ctx, on, "creating a note", func(ctx context.Context) error { return c.Activity.Notes.Create(ctx, &n) }); err != nil {
		return n, err
	}
	comment.Did(ctx, "create", on, n.ID)
	return n, nil
}

// changeable refuses callers who cannot change and remove a note.
func (c collection) changeable(s auth.Subject, on item.Discussed, n item.Note) error {
	switch err := comment.Admit(s, on); {
	case err != nil:
		return err
	case n.System:
		return endpoint.Forbidden("").Describe("A system note cannot be changed.")
	case (s.Caller.User == nil || s.Caller.User.UID != n.Author.UID) && !s.Has(s.Access, c.moderate):
		return endpoint.Forbidden("").Describe("Others' notes need the role Maintainer.")
	default:
		return nil
	}
}

// rewrite changes the text of a note, and shows the note.
func (c collection) rewrite(ctx context.Context, s auth.Subject, on item.Discussed, n item.Note, body string) (Note, error) {
	err := c.changeable(s, on, n)
	if err == nil {
		err = comment.CheckText(body)
	}
	if err != nil {
		return Note{}, err
	}
	var changed note.Note
	err = c.Together(ctx, on, fmt.Sprintf("changing note %d", n.ID), func(ctx context.Context) (err error) {
		changed, err = c.Activity.Notes.Update(ctx, n.ID, body)
		return err
	})
	if err != nil {
		return Note{}, lost(err)
	}
	comment.Did(ctx, "update", on, n.ID)
	return c.show(ctx, s, on, changed)
}

// discard removes a note with its reactions.
func (c collection) discard(ctx context.Context, s auth.Subject, on item.Discussed, n item.Note) error {
	if err := c.changeable(s, on, n); err != nil {
		return err
	}
	err := c.Together(ctx, on, fmt.Sprintf("removing note %d", n.ID), func(ctx context.Context) error {
		if err := c.Activity.Notes.Delete(ctx, n.ID); err != nil {
			return err
		}
		return c.Activity.Reactions.Remove(ctx, note.Kind, n.ID)
	})
	if err != nil {
		return lost(err)
	}
	comment.Did(ctx, "delete", on, n.ID)
	return nil
}

// lost returns the answer if a note was removed after it was found.
func lost(err error) error {
	if errors.Is(err, note.ErrNotFound) {
		return item.Note{}.Missing()
	}
	return err
}
