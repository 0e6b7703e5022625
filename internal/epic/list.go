package epic

import (
	"context"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Filter says which epics a list has. Its zero fields select all.
type Filter struct {
	// In are the groups. A confidential epic is in the list if its group is in Confidential, or if Viewer is its author.
	In, Confidential []types.UID
	Viewer           types.UID

	IIDs  []int64
	State State
	// Author is the UID of the author.
	Author types.UID
	// Labels has a set for each label that an epic must have: the UIDs of the labels with one title.
	Labels [][]types.UID
	// Search is a part of the title or description, in any case.
	Search                                                   string
	CreatedAfter, CreatedBefore, UpdatedAfter, UpdatedBefore time.Time
	// Conditions are true of all epics in the list.
	Conditions []database.Condition
}

// ReactedTo is true of epics to which a user has given a reaction; any reaction if name is empty.
func ReactedTo(user types.UID, name string) database.Condition {
	return func(db bun.IDB) (string, []any) {
		return "epic.id IN (?)", []any{reaction.Given(db, Kind, user, name)}
	}
}

// Order is the order of a list.
type Order struct {
	By         Column
	Descending bool
}

// Column is the sort key of a list.
type Column string

// The columns.
const (
	ByCreation Column = "created_at"
	ByUpdate   Column = "updated_at"
	ByTitle    Column = "title"
)

// List returns a page of the epics that a filter selects, and their total number.
func (s *Store) List(ctx context.Context, f Filter, o Order, skip, limit int) (page []Epic, total int, err error) {
	if len(f.In) == 0 {
		return nil, 0, nil
	}
	direction := " ASC"
	if o.Descending {
		direction = " DESC"
	}
	err = s.db.Read(ctx, "listing epics", func(ctx context.Context, db bun.IDB) error {
		q := database.Select(db, f.apply(db.NewSelect().Model(&page).ExcludeColumn("text")), f.Conditions)
		by := string(o.By)
		if o.By == ByTitle {
			by = search.TitleOf(db, "text")
		}
		n, err := q.OrderExpr(by + direction + ", id" + direction).Offset(int64(skip)).Limit(int64(limit)).ScanAndCount(ctx)
		if total = int(n); err != nil {
			return err
		}
		return complete(ctx, db, page)
	})
	return page, total, err
}

// apply adds the conditions to a query.
func (f Filter) apply(q *bun.SelectQuery) *bun.SelectQuery {
	q.Where("subject_uid IN (?)", bun.List(f.In)).WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
		q.Where("NOT confidential")
		if len(f.Confidential) > 0 {
			q.WhereOr("subject_uid IN (?)", bun.List(f.Confidential))
		}
		if f.Viewer != "" {
			q.WhereOr("author_uid = ?", f.Viewer)
		}
		return q
	})
	if len(f.IIDs) > 0 {
		q.Where("iid IN (?)", bun.List(f.IIDs))
	}
	if f.State != "" {
		q.Where("state = ?", f.State)
	}
	if f.Author != "" {
		q.Where("author_uid = ?", f.Author)
	}
	if f.Search != "" {
		q.Where(search.Contains, bun.Ident("text"), search.Pattern(f.Search))
	}
	for _, uids := range f.Labels {
		if len(uids) == 0 {
			q.Where("1 = 0") // nothing has this title
			continue
		}
		q.Where("EXISTS (SELECT 1 FROM epic_labels AS l WHERE l.epic_id = ?TableAlias.id AND l.label_uid IN (?))", bun.List(uids))
	}
	for condition, at := range map[string]time.Time{
		"created_at >= ?": f.CreatedAfter, "created_at <= ?": f.CreatedBefore, "updated_at >= ?": f.UpdatedAfter, "updated_at <= ?": f.UpdatedBefore,
	} {
		if !at.IsZero() {
			q.Where(condition, database.Time(at))
		}
	}
	return q
}
