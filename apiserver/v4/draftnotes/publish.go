package draftnotes

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/comment"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/draftnote"
	"github.com/forgeplane/forgeplane/internal/note"
)

func (f *Family) publish(ctx context.Context, s subject, _ *endpoint.None) (endpoint.None, error) {
	return endpoint.None{}, answer(f.turn(ctx, s.Subject, s.Record.Outer, s.Record.Record.ID))
}

// publishAll publishes all draft notes of the caller, or none of them if one cannot be published.
func (f *Family) publishAll(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (endpoint.None, error) {
	err := f.turn(ctx, s.Subject, s.Record)
	if errors.Is(err, draftnote.ErrNotFound) {
		err = nil // all are published already
	}
	return endpoint.None{}, err
}

// turn turns draft notes of the caller into notes, in one transaction: those with some ids, or all. The error is draftnote.ErrNotFound if there are
// none.
func (f *Family) turn(ctx context.Context, s auth.Subject, on item.MergeRequest, ids ...int64) error {
	author, err := s.Caller.Person()
	if err == nil {
		err = comment.Admit(s, on)
	}
	if err != nil {
		return err
	}
	var drafts []draftnote.Draft
	var notes []note.Note
	var firsts map[string]*note.Note
	err = f.notes.Together(ctx, on, "publishing draft notes", func(ctx context.Context) (err error) {
		drafts, err = f.Activity.DraftNotes.Take(ctx, on.Item(), author.UID, ids...)
		if err == nil && len(drafts) == 0 {
			err = draftnote.ErrNotFound
		}
		if err == nil {
			firsts, err = f.checkDiscussions(ctx, s, on, drafts)
		}
		if err != nil {
			return err
		}
		notes = make([]note.Note, len(drafts))
		for i, d := range drafts {
			if notes[i], err = f.write(ctx, on, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, d := range drafts {
		did(ctx, "delete", d)
		comment.Did(ctx, "create", on, notes[i].ID)
		if d.Resolves {
			comment.Did(ctx, "update", on, firsts[d.Discussion].ID)
		}
	}
	return nil
}

// checkDiscussions locks the discussions of draft notes, and returns their first notes. It refuses a draft note that cannot be published.
func (f *Family) checkDiscussions(ctx context.Context, s auth.Subject, on item.MergeRequest, drafts []draftnote.Draft) (firsts map[string]*note.Note, err error) {
	all := sets.New[string]()
	for _, d := range drafts {
		all.Insert(d.Discussion)
	}
	firsts = map[string]*note.Note{}
	for _, id := range sets.List(all.Delete("")) {
		first, err := f.Activity.Notes.Lock(ctx, on.Item(), id)
		if err == nil {
			firsts[id] = &first
		} else if !errors.Is(err, note.ErrNotFound) {
			return nil, err
		}
	}
	for _, d := range drafts {
		if problem := f.problem(s, on, d, firsts[d.Discussion]); problem != "" {
			return nil, refuse("base", fmt.Sprintf("Draft note %d: %s", d.ID, problem))
		}
	}
	return firsts, nil
}

// write creates the note of a draft note.
func (f *Family) write(ctx context.Context, on item.MergeRequest, d draftnote.Draft) (note.Note, error) {
	n := note.Note{
		In: on.Place(), On: on.Item(), Body: d.Body, Author: d.Author, Commit: d.Commit, Position: d.Position, Discussion: d.Discussion, Resolvable: true,
	}
	var err error
	if d.Discussion != "" {
		err = f.Activity.Notes.Reply(ctx, &n)
	} else {
		n.Individual, n.Resolvable = d.Position == nil, d.Position != nil
		err = f.Activity.Notes.Create(ctx, &n)
	}
	if err == nil && d.Resolves {
		err = f.Activity.Notes.Resolve(ctx, n.On, n.Discussion, n.Author)
	}
	return n, err
}
