package mergerequest

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"

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

// complete reads the labels, assignees and reviewers of merge requests.
func complete(ctx context.Context, db bun.IDB, some []MergeRequest) error {
	if len(some) == 0 {
		return nil
	}
	at, ids := map[int64]*MergeRequest{}, make([]int64, len(some))
	for n := range some {
		at[some[n].ID], ids[n] = &some[n], some[n].ID
	}
	read := func(rows any, order string) error {
		err := db.NewSelect().Model(rows).Where("merge_request_id IN (?)", bun.List(ids)).Order(order).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	var labels []label
	var assignees []assignee
	var reviewers []reviewer
	if err := errors.Join(read(&labels, "label_id"), read(&assignees, "position"), read(&reviewers, "position")); err != nil {
		return err
	}
	for _, l := range labels {
		m := at[l.MergeRequestID]
		m.Labels = append(m.Labels, l.Label)
	}
	for _, a := range assignees {
		m := at[a.MergeRequestID]
		m.Assignees = append(m.Assignees, a.User)
	}
	for _, r := range reviewers {
		m := at[r.MergeRequestID]
		m.Reviewers = append(m.Reviewers, r.User)
	}
	return nil
}
