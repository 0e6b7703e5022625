package issue

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Seen selects the issues of projects that a viewer can see.
type Seen struct {
	// Projects are the UIDs of the projects. Trusted are the UIDs of those projects in which all confidential issues are seen.
	Projects, Trusted []types.UID
	// Viewer is the UID of the user, who also sees confidential issues as their author or assignee; empty for anonymous callers.
	Viewer types.UID
}

// among selects the issues that are seen.
func (s Seen) among(q *bun.SelectQuery) *bun.SelectQuery {
	if len(s.Projects) == 0 {
		return q.Where("FALSE")
	}
	return q.Where("issue.subject_uid IN (?)", bun.List(s.Projects)).WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("NOT issue.confidential")
		if len(s.Trusted) > 0 {
			q = q.WhereOr("issue.subject_uid IN (?)", bun.List(s.Trusted))
		}
		if s.Viewer != "" {
			q = q.WhereOr("issue.author_uid = ?", s.Viewer).
				WhereOr("issue.id IN (SELECT issue_id FROM issue_assignees WHERE user_uid = ?)", s.Viewer)
		}
		return q
	})
}

// Order is the sort key of a list of issues.
type Order string

// The orders. Issues without a due date or weight come last.
const (
	ByCreation Order = "created_at"
	ByUpdate   Order = "updated_at"
	ByTitle    Order = "title"
	ByDue      Order = "due_date"
	ByWeight   Order = "weight"
)

// Query selects a page of issues.
type Query struct {
	Seen
	// Conditions are true of all selected issues.
	Conditions []Condition
	Order      Order
	Ascending  bool
	database.Page
}

// few is the maximum number of issues that count as few in a list.
var few = database.Few // tests change it

// List returns a page of issues, and the number of selected issues, which is counted up to of.Enough.
func (s *Store) List(ctx context.Context, of Query) (page []Issue, total int, err error) {
	list := database.List[Issue]{
		Selected: of.selected,
		Sorted:   of.sorted,
		ID:       func(i Issue) int64 { return i.ID },
		Without:  []string{"text"},
		Counts:   s.counts,
	}
	err = s.db.Read(ctx, "listing issues", func(ctx context.Context, db bun.IDB) error {
		if page, total, err = list.Read(ctx, db, of.Page); err != nil {
			return err
		}
		return complete(ctx, db, page)
	})
	return page, total, err
}

// selected selects the issues of a query, in no order.
func (of Query) selected(db bun.IDB) *bun.SelectQuery {
	return database.Select(db, of.among(db.NewSelect().Model((*Issue)(nil))), of.Conditions)
}

// sorted selects and sorts the issues of a query. total is their number.
func (of Query) sorted(db bun.IDB, total int) *bun.SelectQuery {
	order := database.Order{Table: "issues", Alias: "issue", By: "issue." + string(of.Order), Ascending: of.Ascending, Projects: len(of.Projects), Few: few}
	switch of.Order {
	case ByCreation:
		order.Index = "issues_by_creation"
	case ByUpdate:
		order.Index = "issues_by_update"
	case ByTitle:
		order.By = search.TitleOf(db, "issue.text")
	case ByDue:
		order.Last = "issue.due_date = ''"
	case ByWeight:
		order.Last = "issue.weight IS NULL"
	}
	return order.Sort(db, total, of.selected)
}

// Count has the numbers of open and closed issues with a label.
type Count struct{ Open, Closed int64 }

// CountLabels returns the counts of labels by their UIDs, among the issues that are seen. Labels that no issue has are left out.
func (s *Store) CountLabels(ctx context.Context, seen Seen, labels ...types.UID) (map[types.UID]Count, error) {
	counts := map[types.UID]Count{}
	if len(labels) == 0 {
		return counts, nil
	}
	var rows []struct {
		UID   types.UID
		State State
		N     int64
	}
	err := s.db.Read(ctx, "counting the issues of labels", func(ctx context.Context, db bun.IDB) error {
		return seen.among(db.NewSelect().Model((*Issue)(nil))).Join("JOIN issue_labels AS l ON l.issue_id = issue.id").
			ColumnExpr("l.label_uid AS uid").ColumnExpr("issue.state AS state").ColumnExpr("count(*) AS n").
			Where("l.label_uid IN (?)", bun.List(labels)).Group("l.label_uid", "issue.state").Scan(ctx, &rows)
	})
	for _, r := range rows {
		c := counts[r.UID]
		if r.State == Opened {
			c.Open = r.N
		} else {
			c.Closed = r.N
		}
		counts[r.UID] = c
	}
	return counts, err
}
