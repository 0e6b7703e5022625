package mergerequest

import (
	"context"

	"github.com/uptrace/bun"
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

// few is the maximum number of merge requests that count as few in a list.
var few = database.Few // tests change it

// List returns a page of merge requests, and the number of selected merge requests, which is counted up to of.Enough.
func (s *Store) List(ctx context.Context, of Query) (page []MergeRequest, total int, err error) {
	list := database.List[MergeRequest]{
		Selected: of.selected,
		Sorted:   of.sorted,
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

// sorted selects and sorts the merge requests of a query. total is their number.
func (of Query) sorted(db bun.IDB, total int) *bun.SelectQuery {
	order := database.Order{
		Table: "merge_requests", Alias: "merge_request", By: "merge_request." + string(of.Order), Ascending: of.Ascending,
		Projects: len(of.Projects), FindFirst: true, Few: few,
	}
	switch of.Order {
	case ByCreation:
		order.Index = "merge_requests_by_creation"
	case ByUpdate:
		order.Index = "merge_requests_by_update"
	case ByTitle:
		order.By, order.Index = search.TitleOf(db, "merge_request.text"), "merge_requests_by_title"
	}
	return order.Sort(db, total, of.selected)
}

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
