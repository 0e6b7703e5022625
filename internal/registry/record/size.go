package record

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// maxSize is the largest size that is recorded, a pebibyte. The sizes of all repositories of a project together do not overflow.
const maxSize = 1 << 50

// Unsized returns the repositories of a project whose tags have changed since their sizes were measured: at most limit of them.
func (s *Store) Unsized(ctx context.Context, project types.UID, limit int) (found []Repository, err error) {
	err = s.db.Read(ctx, "listing container repositories", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&found).Where("project_uid = ?", project).Where("sized <> changes").Where("status = ''").
			Order("id").Limit(int64(limit)).Scan(ctx)
	})
	return found, err
}

// Resize records the size of a repository, which was measured at a count of changes.
func (s *Store) Resize(ctx context.Context, id, changes, size int64) error {
	return s.db.Write(ctx, "recording the size of a container repository", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Repository)(nil)).Set("size = ?", min(size, maxSize)).Set("sized = ?", changes).
			Where("id = ?", id).Where("sized < ?", changes).Exec(ctx)
		return err
	})
}

// Size returns the recorded size of all repositories of a project together.
func (s *Store) Size(ctx context.Context, project types.UID) (size int64, err error) {
	err = s.db.Read(ctx, "adding the sizes of container repositories", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Repository)(nil)).ColumnExpr("CAST(COALESCE(SUM(size), 0) AS BIGINT)").Where("project_uid = ?", project).Scan(ctx, &size)
	})
	return size, err
}
