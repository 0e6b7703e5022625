package mergerequest

import (
	"context"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Order is the sort key of a list of merge requests.
type Order string

// The orders.
const (
	ByCreation Order = "created_at"
	ByUpdate   Order = "updated_at"
	ByTitle    Order = "title"
)

// Query selects a page of merge requests.
type Query struct {
	// Projects are the UIDs of the target projects.
	Projects []types.UID
	// Conditions are true of all selected merge requests.
	Conditions []Condition
	Order      Order
	Ascending  bool
	database.Page
}

// few is the number of merge requests that are sorted faster than found among others in the order of the list.
var few = 1000 // tests change it

// List returns a page of merge requests, and the number of selected merge requests, which is counted up to of.Enough.
func (s *Store) List(ctx context.Context, of Query) (page []MergeRequest, total int, err error) {
	list := database.List[MergeRequest]{
		Selected: of.selected,
		Sorted:   func(db bun.IDB, total int) *bun.SelectQuery { return of.sorted(db, total > few) },
		ID:       func(m MergeRequest) int64 { return m.ID },
		Without:  []string{"text"},
		Counts:   s.counts,
	}
	err = s.db.Read(ctx, "listing merge requests", func(ctx context.Context, db bun.IDB) error {
		if page, total, err = list.Read(ctx, db, of.Page); err != nil {
			return err
		}
		return complete(ctx, db, page)
	})
	return page, total, err
}

// selected selects the merge requests of a query, in no order.
func (of Query) selected(db bun.IDB) *bun.SelectQuery {
	return database.Select(db, inProjects(db.NewSelect().Model((*MergeRequest)(nil)), of.Projects), of.Conditions)
}

// sorted selects and sorts the merge requests of a query. Equal ones are sorted by id, in the same direction. SQLite does not know how many there are: it
// is told to go through the merge requests in their order if there are many, and otherwise to find them first.
func (of Query) sorted(db bun.IDB, many bool) *bun.SelectQuery {
	by, table, direction := "merge_request."+string(of.Order), "merge_requests AS merge_request", " DESC"
	if of.Ascending {
		direction = " ASC"
	}
	switch sqlite := db.Dialect().Name() == dialect.SQLite; {
	case of.Order == ByTitle:
		by = search.TitleOf(db, "merge_request.text")
	case sqlite && many:
		db, table = database.RowByRow(db), table+" INDEXED BY "+orderIndexes[of.Order]
	case sqlite:
		by = "+" + by
	}
	return of.selected(db).ModelTableExpr(table).OrderExpr(by + direction).OrderExpr("merge_request.id" + direction)
}

// orderIndexes are the indexes of the orders.
var orderIndexes = map[Order]string{ByCreation: "merge_requests_by_creation", ByUpdate: "merge_requests_by_update"}

// CountLabels returns the numbers of open merge requests with labels by the UIDs of the labels, in some projects. Labels without one are left out.
func (s *Store) CountLabels(ctx context.Context, projects []types.UID, labels ...types.UID) (map[types.UID]int64, error) {
	counts := map[types.UID]int64{}
	if len(labels) == 0 {
		return counts, nil
	}
	var rows []struct {
		UID types.UID
		N   int64
	}
	err := s.db.Read(ctx, "counting the merge requests of labels", func(ctx context.Context, db bun.IDB) error {
		return inProjects(db.NewSelect().Model((*MergeRequest)(nil)), projects).Join("JOIN merge_request_labels AS l ON l.merge_request_id = merge_request.id").
			ColumnExpr("l.label_uid AS uid").ColumnExpr("count(*) AS n").
			Where("l.label_uid IN (?)", bun.List(labels)).Where("merge_request.state = ?", Opened).Group("l.label_uid").Scan(ctx, &rows)
	})
	for _, r := range rows {
		counts[r.UID] = r.N
	}
	return counts, err
}

// CountFromForks returns the number of open merge requests from forks into a project by an author.
func (s *Store) CountFromForks(ctx context.Context, project, author types.UID) (n int, err error) {
	err = s.db.Read(ctx, "counting the merge requests from forks", func(ctx context.Context, db bun.IDB) error {
		found, err := db.NewSelect().Model((*MergeRequest)(nil)).Where("author_uid = ?", author).Where("subject_uid = ?", project).
			Where("source_uid <> subject_uid").Where("state IN (?)", bun.List([]State{Opened, Locked})).Count(ctx)
		n = int(found)
		return err
	})
	return n, err
}

// inProjects selects the merge requests of projects.
func inProjects(q *bun.SelectQuery, projects []types.UID) *bun.SelectQuery {
	if len(projects) == 0 {
		return q.Where("FALSE")
	}
	return q.Where("merge_request.subject_uid IN (?)", bun.List(projects))
}
