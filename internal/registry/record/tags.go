package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"
)

// settling is the time for which the beginning of a change keeps others from recording the digest of the tag. A process can end after the
// change and before it records it, so what was read in between can be outdated. It is far longer than a change takes and than clocks
// differ.
const settling = time.Minute

// Tag is the record of a tag.
type Tag struct {
	bun.BaseModel `bun:"table:container_tags"`

	RepositoryID int64  `bun:"repository_id,pk"`
	Name         string `bun:"name,pk"`
	// Change is the count of changes of the repository at which the last change of the tag began, and Changed when. Change is 0 if none is recorded.
	Change  int64     `bun:"change"`
	Changed time.Time `bun:"changed_at"`
	// Digest is the digest of the manifest. It is empty if it is unknown: during a change, and after simultaneous ones.
	Digest string `bun:"digest"`
	// Made is the time at which the image was made, in RFC 3339, because an image can claim a time that a database refuses. It is empty for an
	// image without a time.
	Made string `bun:"made"`
}

// Result is the result of a change of tags. The digests of changed tags that it does not have are unknown.
type Result struct {
	// Gone are the tags that no longer exist.
	Gone []string
	// Known are the tags that exist.
	Known []Tag
}

// Change counts a change of tags of a repository, and forgets what they mean. Call it before the change, and Changed after it, with the count. The
// error is ErrDeleted or ErrNotFound for a repository that takes no changes.
func (s *Store) Change(ctx context.Context, id int64, tags ...string) (count int64, err error) {
	err = s.db.Atomically(ctx, "recording a change of tags", func(ctx context.Context, db bun.IDB) error {
		if count, err = s.count(ctx, id); err != nil {
			return err
		}
		for some := range slices.Chunk(tags, touchedAtOnce) {
			rows := make([]Tag, len(some))
			for i, name := range some {
				rows[i] = Tag{RepositoryID: id, Name: name, Change: count, Changed: s.clock.Now().UTC()}
			}
			_, err := db.NewInsert().Model(&rows).On("CONFLICT (repository_id, name) DO UPDATE").Set("change = EXCLUDED.change").
				Set("changed_at = EXCLUDED.changed_at").Set("digest = ''").Set("made = ''").Returning("NULL").Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return count, err
}

// count counts a change of a repository, and locks its record. So two transactions that change tags never wait for each other.
func (s *Store) count(ctx context.Context, id int64) (int64, error) {
	err := s.update(ctx, "recording a change of tags", id, func(q *bun.UpdateQuery) *bun.UpdateQuery {
		return q.Set("changes = changes + 1").Where("status = ''")
	})
	if err != nil {
		return 0, err
	}
	r, err := s.Get(ctx, id)
	return r.Changes, err
}

// Changed counts the end of a change of tags that began at a count, and records its result. Of several simultaneous changes of a tag, it is unknown
// which one was the last, so it records what the tag means only if no other one has begun since. It fails with the same errors as Change.
func (s *Store) Changed(ctx context.Context, id, began int64, tags []string, result Result) error {
	return s.db.Atomically(ctx, "recording a change of tags", func(ctx context.Context, db bun.IDB) error {
		count, err := s.count(ctx, id)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(tags, atOnce) {
			_, err := db.NewUpdate().Model((*Tag)(nil)).Set("change = ?", count).Set("changed_at = ?", s.clock.Now().UTC()).Set("digest = ''").Set("made = ''").
				Where("repository_id = ?", id).Where("name IN (?)", bun.List(some)).Where("change <> ?", began).Exec(ctx)
			if err != nil {
				return err
			}
		}
		for some := range slices.Chunk(result.Gone, atOnce) {
			_, err := db.NewDelete().Model((*Tag)(nil)).Where("repository_id = ?", id).Where("name IN (?)", bun.List(some)).Where("change = ?", began).Exec(ctx)
			if err != nil {
				return err
			}
		}
		for _, t := range result.Known {
			_, err := db.NewUpdate().Model((*Tag)(nil)).Set("digest = ?", t.Digest).Set("made = ?", t.Made).
				Where("repository_id = ?", id).Where("name = ?", t.Name).Where("change = ?", began).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Tags returns the records of at most limit tags of a repository whose names follow a name, in the order of the database. Tags that another program
// has put into the storage are not recorded, and some recorded ones may be gone.
func (s *Store) Tags(ctx context.Context, id int64, after string, limit int) (page []Tag, err error) {
	err = s.db.Read(ctx, "reading the tags of a container repository", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&page).Where("repository_id = ?", id).Where("name > ?", after).Order("name").Limit(int64(limit)).Scan(ctx)
	})
	return page, err
}

// Learn records what tags mean that were unknown at their Change, unless they have changed since. It does nothing if the repository does not exist.
func (s *Store) Learn(ctx context.Context, id int64, tags []Tag) error {
	if len(tags) == 0 {
		return nil
	}
	now := s.clock.Now().UTC()
	for i := range tags {
		tags[i].RepositoryID, tags[i].Changed = id, now
	}
	err := s.db.Atomically(ctx, "recording what tags mean", func(ctx context.Context, db bun.IDB) error {
		if err := grow(ctx, db, id, 0); err != nil {
			return err
		}
		for some := range slices.Chunk(tags, touchedAtOnce) {
			_, err := db.NewInsert().Model(&some).On("CONFLICT (repository_id, name) DO UPDATE").Set("digest = EXCLUDED.digest").Set("made = EXCLUDED.made").
				Where("?TableAlias.change = EXCLUDED.change").Where("?TableAlias.digest = ''").Where("?TableAlias.changed_at < ?", now.Add(-settling)).
				Returning("NULL").Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Unlearn removes what is recorded of tags, except of those that have changed since, and counts a change, so that no process goes on to use it.
func (s *Store) Unlearn(ctx context.Context, id int64, tags []Tag) error {
	for some := range slices.Chunk(tags, touchedAtOnce) {
		err := s.db.Atomically(ctx, "forgetting what tags mean", func(ctx context.Context, db bun.IDB) error {
			if _, err := s.count(ctx, id); err != nil {
				return err
			}
			for _, t := range some {
				_, err := db.NewDelete().Model((*Tag)(nil)).Where("repository_id = ?", id).Where("name = ?", t.Name).
					Where("change = ?", t.Change).Where("digest = ?", t.Digest).Exec(ctx)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
