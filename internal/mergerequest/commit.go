package mergerequest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
)

// Commits are the commits that identify those of a merge request, as far as they exist: those of Head that Base does not have, and those that the merge
// made.
type Commits struct {
	bun.BaseModel `bun:"table:merge_requests"`

	ID       int64     `bun:"id"`
	IID      int64     `bun:"iid"`
	Head     string    `bun:"head_sha"`
	Base     string    `bun:"base_sha"`
	Merge    string    `bun:"merge_commit_sha"`
	Squash   string    `bun:"squash_commit_sha"`
	MergedAt time.Time `bun:"merged_at,nullzero"`
}

// commitBatch is the number of commits in a query, whose text has a maximum length.
const commitBatch = 2000

// MergedWith returns the commits of the merged merge requests of a project whose head, merge commit or squash commit is one of some commits. The merge
// request that was merged first comes first.
func (s *Store) MergedWith(ctx context.Context, project types.UID, commits []string) (all []Commits, err error) {
	err = s.db.Read(ctx, "finding the merge requests of commits", func(ctx context.Context, db bun.IDB) error {
		for some := range slices.Chunk(commits, commitBatch) {
			var found []Commits
			in := bun.List(some)
			err := db.NewSelect().Model(&found).Where("subject_uid = ?", project).Where("state = ?", Merged).
				Where("head_sha IN (?) OR merge_commit_sha IN (?) OR squash_commit_sha IN (?)", in, in, in).Scan(ctx)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Commits) int { return cmp.Or(a.MergedAt.Compare(b.MergedAt), cmp.Compare(a.ID, b.ID)) })
	return slices.CompactFunc(all, func(a, b Commits) bool { return a.ID == b.ID }), err
}

// Newest returns the commits of the newest merge requests of a project, at most limit.
func (s *Store) Newest(ctx context.Context, project types.UID, limit int) (all []Commits, err error) {
	err = s.db.Read(ctx, "reading the commits of merge requests", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&all).Where("subject_uid = ?", project).Where("head_sha <> ''").Order("id DESC").Limit(int64(limit)).Scan(ctx)
	})
	return all, err
}
