package record

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// KindProject is the kind of the objects that have repositories.
const KindProject = "project"

// Projects returns the repositories that are in use, by their projects, for a sweep.Sweeper. It calls remove for each one to remove.
func (s *Store) Projects(remove func(ctx context.Context, r Repository) error) sweep.Rows {
	return projects{s, remove}
}

type projects struct {
	store  *Store
	remove func(ctx context.Context, r Repository) error
}

// After implements sweep.Rows.
func (p projects) After(ctx context.Context, after database.Subject) ([]database.Subject, error) {
	var ids []int64
	var uids []types.UID
	err := p.store.db.Read(ctx, "listing the projects with container repositories", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Repository)(nil)).Distinct().Column("project_id", "project_uid").Where("status = ''").
			Where("(project_id, project_uid) > (?, ?)", after.ID, after.UID).
			Order("project_id", "project_uid").Limit(sweep.SubjectsAtOnce).Scan(ctx, &ids, &uids)
	})
	subjects := make([]database.Subject, len(ids))
	for i := range ids {
		subjects[i] = database.Subject{Kind: after.Kind, ID: ids[i], UID: uids[i]}
	}
	return subjects, err
}

// removedAtOnce is the number of repositories of a project that are read at once.
const removedAtOnce = 500

// Remove implements sweep.Rows.
func (p projects) Remove(ctx context.Context, subject database.Subject) error {
	for skip := 0; ; skip += removedAtOnce {
		page, _, err := p.store.Of(ctx, []types.UID{subject.UID}, skip, removedAtOnce)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := p.remove(ctx, r); err != nil {
				return err
			}
		}
		if len(page) < removedAtOnce {
			return nil
		}
	}
}
