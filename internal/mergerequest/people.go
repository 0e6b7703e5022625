package mergerequest

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// label, assignee and reviewer are rows of the tables that join merge requests with labels and users.
type label struct {
	bun.BaseModel `bun:"table:merge_request_labels"`

	MergeRequestID int64 `bun:"merge_request_id,pk"`
	Label          Label `bun:"embed:label_"`
}

type assignee struct {
	bun.BaseModel `bun:"table:merge_request_assignees"`

	person
}

type reviewer struct {
	bun.BaseModel `bun:"table:merge_request_reviewers"`

	person
}

type person struct {
	MergeRequestID int64         `bun:"merge_request_id,pk"`
	User           database.User `bun:"embed:user_"`
	Position       int           `bun:"position"`
}

// attach writes the labels, assignees, reviewers and mentioned issues of a merge request that has none.
func attach(ctx context.Context, db bun.IDB, m *MergeRequest) error {
	labels := make([]label, len(m.Labels))
	for n, l := range m.Labels {
		labels[n] = label{MergeRequestID: m.ID, Label: l}
	}
	assignees := make([]assignee, len(m.Assignees))
	for n, u := range m.Assignees {
		assignees[n].person = person{m.ID, u, n}
	}
	reviewers := make([]reviewer, len(m.Reviewers))
	for n, u := range m.Reviewers {
		reviewers[n].person = person{m.ID, u, n}
	}
	issues := m.mentions()
	for _, rows := range []struct {
		n     int
		model any
	}{{len(labels), &labels}, {len(assignees), &assignees}, {len(reviewers), &reviewers}, {len(issues), &issues}} {
		if rows.n == 0 {
			continue
		}
		if _, err := db.NewInsert().Model(rows.model).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// detach removes the labels, assignees, reviewers and mentioned issues of a merge request.
func detach(ctx context.Context, db bun.IDB, id int64) error {
	for _, row := range []any{(*label)(nil), (*assignee)(nil), (*reviewer)(nil), (*mention)(nil)} {
		if _, err := db.NewDelete().Model(row).Where("merge_request_id = ?", id).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// related is a label, an assignee or a reviewer of a merge request.
type related struct {
	What           string
	MergeRequestID int64
	ID             int64
	UID            types.UID
	Position       int64
}

// relatedRows selects what is related to merge requests in one query, because each takes longer to compile than to run.
const relatedRows = `
SELECT 'label' AS what, merge_request_id, label_id AS id, label_uid AS uid, label_id AS position FROM merge_request_labels WHERE merge_request_id IN (?)
UNION ALL SELECT 'assignee', merge_request_id, user_id, user_uid, position FROM merge_request_assignees WHERE merge_request_id IN (?)
UNION ALL SELECT 'reviewer', merge_request_id, user_id, user_uid, position FROM merge_request_reviewers WHERE merge_request_id IN (?)
ORDER BY position`

// complete reads the labels, assignees and reviewers of merge requests.
func complete(ctx context.Context, db bun.IDB, some []MergeRequest) error {
	if len(some) == 0 {
		return nil
	}
	at, ids := map[int64]*MergeRequest{}, make([]int64, len(some))
	for n := range some {
		at[some[n].ID], ids[n] = &some[n], some[n].ID
	}
	var rows []related
	if err := db.NewRaw(relatedRows, bun.List(ids), bun.List(ids), bun.List(ids)).Scan(ctx, &rows); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for _, r := range rows {
		switch m, user := at[r.MergeRequestID], (database.User{ID: r.ID, UID: r.UID}); r.What {
		case "assignee":
			m.Assignees = append(m.Assignees, user)
		case "reviewer":
			m.Reviewers = append(m.Reviewers, user)
		default:
			m.Labels = append(m.Labels, Label{ID: r.ID, UID: r.UID})
		}
	}
	return nil
}
