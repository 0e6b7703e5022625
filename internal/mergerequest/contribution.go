package mergerequest

import (
	"context"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// HasMerged reports whether a project has a merged merge request of an author.
func (s *Store) HasMerged(ctx context.Context, project, author types.UID) (has bool, err error) {
	err = s.db.Read(ctx, "looking for an earlier contribution", func(ctx context.Context, db bun.IDB) error {
		has, err = db.NewSelect().Model((*MergeRequest)(nil)).Where("subject_uid = ?", project).Where("author_uid = ?", author).Where("state = ?", Merged).Exists(ctx)
		return err
	})
	return has, err
}
