package note

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Reader says which internal notes are read. All other notes always are.
type Reader struct {
	// Internal includes all internal notes.
	Internal bool
	// User is the UID of the user, whose own internal notes are included; empty for anonymous callers.
	User types.UID
}

// Kinds are notes that a Query selects.
type Kinds int

// The kinds of notes.
const (
	Every Kinds = iota
	Written
	System
)

// Query selects notes on an item, and sorts them by the time at which they were created.
type Query struct {
	Reader Reader
	Kinds  Kinds
	// ByUpdate sorts by the time of the last change instead.
	ByUpdate bool
	// Ascending sorts the oldest first.
	Ascending   bool
	Skip, Limit int
}

// List returns a page of the notes on an item, and the number of all notes that the query selects.
func (s *Store) List(ctx context.Context, on database.Item, q Query) (some []Note, total int, err error) {
	by, direction := "created_at", " DESC"
	if q.ByUpdate {
		by = "updated_at"
	}
	if q.Ascending {
		direction = ""
	}
	err = s.db.Read(ctx, "listing the notes on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		query := visible(db.NewSelect().Model(&some), on, q.Reader).Order(by+direction, "id"+direction).Offset(int64(q.Skip)).Limit(int64(q.Limit))
		if q.Kinds != Every {
			query = query.Where("system = ?", q.Kinds == System)
		}
		n, err := query.ScanAndCount(ctx)
		total = int(n)
		return err
	})
	return some, total, err
}

// Discussions returns a page of the discussions on an item as lists of their notes, and the number of all discussions. Discussions and their notes are
// in order, oldest first.
func (s *Store) Discussions(ctx context.Context, on database.Item, r Reader, skip, limit int) (some [][]Note, total int, err error) {
	err = s.db.Read(ctx, "listing the discussions on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		all := visible(db.NewSelect().Model((*Note)(nil)), on, r)
		if err := all.Clone().ColumnExpr("count(DISTINCT discussion)").Scan(ctx, &total); err != nil {
			return err
		}
		var ids []string
		err := all.Clone().Column("discussion").Group("discussion").OrderExpr("min(created_at), min(id)").
			Offset(int64(skip)).Limit(int64(limit)).Scan(ctx, &ids)
		if err != nil || len(ids) == 0 {
			return err
		}
		var notes []Note
		if err := visible(db.NewSelect().Model(&notes), on, r).Where("discussion IN (?)", bun.List(ids)).Order("id").Scan(ctx); err != nil {
			return err
		}
		some = together(ids, notes)
		return nil
	})
	return some, total, err
}

// together puts the notes of each discussion together, in the order of the discussions.
func together(discussions []string, notes []Note) [][]Note {
	of := map[string][]Note{}
	for _, n := range notes {
		of[n.Discussion] = append(of[n.Discussion], n)
	}
	all := make([][]Note, 0, len(discussions))
	for _, id := range discussions {
		if len(of[id]) > 0 { // they can be removed between the two queries
			all = append(all, of[id])
		}
	}
	return all
}

// Discussion returns the notes of a discussion on an item, the oldest first. The error is ErrNotFound if the reader sees none.
func (s *Store) Discussion(ctx context.Context, on database.Item, r Reader, id string) (notes []Note, err error) {
	err = s.db.Read(ctx, "reading a discussion on "+on.String(), func(ctx context.Context, db bun.IDB) error {
		err := visible(db.NewSelect().Model(&notes), on, r).Where("discussion = ?", id).Order("id").Scan(ctx)
		if err == nil && len(notes) == 0 {
			err = ErrNotFound
		}
		return err
	})
	return notes, err
}

// visible selects the notes on an item that a reader sees.
func visible(query *bun.SelectQuery, on database.Item, r Reader) *bun.SelectQuery {
	query = query.Where("item_kind = ?", on.Kind).Where("item_id = ?", on.ID)
	switch {
	case r.Internal:
		return query
	case r.User == "":
		return query.Where("NOT internal")
	default:
		return query.Where("NOT internal OR author_uid = ?", r.User)
	}
}
