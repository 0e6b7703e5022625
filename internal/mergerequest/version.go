package mergerequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// ErrVersionNotFound says that a merge request has no version with an id.
var ErrVersionNotFound = errors.New("there is no such version")

// Version is the state of a merge request after a push to its source branch: the head of that branch, its merge base with the target branch, and the
// head of the target branch at that time.
type Version struct {
	bun.BaseModel `bun:"table:merge_request_versions"`

	ID             int64  `bun:"id,pk,autoincrement"`
	MergeRequestID int64  `bun:"merge_request_id"`
	Head           string `bun:"head_sha"`
	Base           string `bun:"base_sha"`
	Start          string `bun:"start_sha"`
	// KeepApprovals says that AddVersion leaves the approvals. It is not stored.
	KeepApprovals bool `bun:"-"`
	// ChangesCount is the number of changed files, as in MergeRequest.
	ChangesCount string    `bun:"changes_count"`
	Created      time.Time `bun:"created_at"`
}

// AddVersion records a version, makes it the latest one of its merge request, and removes the approvals if the head has changed, unless
// the version keeps them. A merge that waits for a pipeline of another head is forgotten.
// changes is the value of ChangesCount.
func (s *Store) AddVersion(ctx context.Context, v *Version, changes string) error {
	v.Created, v.ChangesCount = s.clock.Now().UTC(), changes
	return s.db.Atomically(ctx, fmt.Sprintf("recording a version of merge request %d", v.MergeRequestID), func(ctx context.Context, db bun.IDB) error {
		moved, err := db.NewSelect().Model((*MergeRequest)(nil)).Where("id = ?", v.MergeRequestID).Where("head_sha NOT IN ('', ?)", v.Head).Exists(ctx)
		if err != nil {
			return err
		}
		err = found(db.NewUpdate().Model((*MergeRequest)(nil)).Set("head_sha = ?", v.Head).Set("base_sha = ?", v.Base).Set("start_sha = ?", v.Start).
			Set("changes_count = ?", changes).Set("merge_status = ?", Unchecked).Set("updated_at = ?", v.Created).Where("id = ?", v.MergeRequestID).Exec(ctx))
		if err != nil {
			return err
		}
		if moved {
			if _, err := stopWaiting(db, v.MergeRequestID).Exec(ctx); err != nil {
				return err
			}
		}
		if moved && !v.KeepApprovals {
			if err := unapprove(ctx, db, v.MergeRequestID); err != nil {
				return err
			}
		}
		_, err = db.NewInsert().Model(v).Returning("id").Exec(ctx)
		return err
	})
}

// Versions returns a page of the versions of a merge request, the newest first, and their number.
func (s *Store) Versions(ctx context.Context, id int64, skip, limit int) (page []Version, total int, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing the versions of merge request %d", id), func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model(&page).Where("merge_request_id = ?", id)
		n, err := q.Count(ctx)
		if total = int(n); err != nil || total <= skip {
			return err
		}
		return q.Order("id DESC").Offset(int64(skip)).Limit(int64(limit)).Scan(ctx)
	})
	return page, total, err
}

// Version returns a version of a merge request. The error is ErrVersionNotFound if there is none with the id.
func (s *Store) Version(ctx context.Context, mergeRequest, id int64) (Version, error) {
	var some []Version
	err := s.db.Read(ctx, fmt.Sprintf("reading a version of merge request %d", mergeRequest), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&some).Where("merge_request_id = ?", mergeRequest).Where("id = ?", id).Scan(ctx)
	})
	if err == nil && len(some) == 0 {
		err = ErrVersionNotFound
	}
	if err != nil {
		return Version{}, err
	}
	return some[0], nil
}
