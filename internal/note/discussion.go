package note

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Reply adds a note to the discussion that it names, and completes it. The first note is no longer individual then, and resolvable if the new one
// is. The new one is internal, resolved and at a position if the discussion is. If Created is not zero, it stays. Reply returns ErrNotFound if the item has no
// such discussion, ErrSystem if it begins with a system note, and ErrFull if the item has MaxNotes notes.
func (s *Store) Reply(ctx context.Context, n *Note) error {
	return s.db.Atomically(ctx, fmt.Sprintf("replying to a discussion on %s", n.On), func(ctx context.Context, db bun.IDB) error {
		var first []Note
		_, err := db.NewUpdate().Model((*Note)(nil)).Set("individual = ?", false).Set("resolvable = ?", n.Resolvable).
			Where("id = (?)", oldest(db, n.On, n.Discussion)).Returning("*").Exec(ctx, &first)
		switch {
		case err != nil:
			return err
		case len(first) == 0:
			return ErrNotFound
		case first[0].System:
			return ErrSystem
		}
		n.Individual, n.Internal = false, first[0].Internal
		n.Resolver, n.ResolvedAt, n.Position = first[0].Resolver, first[0].ResolvedAt, first[0].Position
		return s.insert(ctx, n)
	})
}

// oldest selects the id of the first note of a discussion on an item.
func oldest(db bun.IDB, on database.Item, discussion string) *bun.SelectQuery {
	return db.NewSelect().Model((*Note)(nil)).ColumnExpr("min(id)").
		Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Where("discussion = ?", discussion)
}

// First returns the first note of a discussion on an item. The error is ErrNotFound if the item has no such discussion.
func (s *Store) First(ctx context.Context, on database.Item, discussion string) (n Note, err error) {
	err = s.db.Read(ctx, "reading the first note of a discussion on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		return database.Found(db.NewSelect().Model(&n).Where("id = (?)", oldest(db, on, discussion)).Scan(ctx), ErrNotFound)
	})
	return n, err
}

// Lock keeps others from replying to a discussion until the transaction ends, and returns its first note. The error is ErrNotFound if the item has no
// such discussion. Callers that lock several discussions must do so in the order of their ids.
func (s *Store) Lock(ctx context.Context, on database.Item, discussion string) (Note, error) {
	var first []Note
	err := s.db.Write(ctx, "locking a discussion on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Note)(nil)).Set("individual = individual").Where("id = (?)", oldest(db, on, discussion)).
			Returning("*").Exec(ctx, &first)
		if err == nil && len(first) == 0 {
			err = ErrNotFound
		}
		return err
	})
	if err != nil {
		return Note{}, err
	}
	return first[0], nil
}

// Resolve resolves a discussion as a user, or makes it unresolved again if the user is empty. Nothing changes if nothing in it is resolvable, or if
// it is in that state already.
func (s *Store) Resolve(ctx context.Context, on database.Item, discussion string, by database.User) error {
	resolves, at := by != database.User{}, time.Time{}
	if resolves {
		at = s.clock.Now().UTC()
	}
	return s.db.Write(ctx, "resolving a discussion on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Note)(nil)).
			Set("resolver_id = ?", by.ID).Set("resolver_uid = ?", by.UID).Set("resolved_at = ?", bun.NullTime{Time: at}).
			Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID).Where("discussion = ?", discussion).
			Where("resolvable").Where("(resolved_at IS NULL) = ?", resolves).Exec(ctx)
		return err
	})
}
