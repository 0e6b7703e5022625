package milestone

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/search"
)

// Filter says which milestones a list has. Its zero fields select all.
type Filter struct {
	// In are the projects and groups.
	In   []types.UID
	IIDs []int64
	// State is one of the states.
	State State
	// Title is the whole title.
	Title string
	// Search is a part of the title or description, in any case.
	Search string
}

// List returns a page of the milestones of projects and groups, and how many there are. Milestones that are due first come first.
func (s *Store) List(ctx context.Context, f Filter, skip, limit int) (page []Milestone, total int, err error) {
	if len(f.In) == 0 {
		return nil, 0, nil
	}
	err = s.db.Read(ctx, "listing milestones", func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model(&page).ExcludeColumn("text").Where("subject_uid IN (?)", bun.List(f.In))
		if len(f.IIDs) > 0 {
			q.Where("iid IN (?)", bun.List(f.IIDs))
		}
		if f.State != "" {
			q.Where("state = ?", f.State)
		}
		if f.Title != "" {
			q.Where("title = ?", f.Title)
		}
		if f.Search != "" {
			q.Where(search.Contains, bun.Ident("text"), search.Pattern(f.Search))
		}
		n, err := q.OrderExpr("due_date = '', due_date, start_date = '', start_date, title, id").Offset(int64(skip)).Limit(int64(limit)).ScanAndCount(ctx)
		total = int(n)
		return err
	})
	return page, total, err
}
