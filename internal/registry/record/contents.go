package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

// Content is something that a repository has in the storage.
type Content struct {
	bun.BaseModel `bun:"table:container_contents"`

	RepositoryID int64 `bun:"repository_id,pk"`
	// Name is the digest of a layer, a configuration or a manifest, or Upload of an unfinished upload.
	Name string `bun:"name,pk"`
	// Size is the number of bytes.
	Size int64 `bun:"size"`
}

// UploadPrefix is the prefix of the names of unfinished uploads. Digests do not have it.
const UploadPrefix = "upload/"

// Upload returns the name of an unfinished upload with an id.
func Upload(id string) string { return UploadPrefix + id }

// release is the size of a repository that was deleted.
type release struct {
	bun.BaseModel `bun:"table:container_releases"`

	ProjectUID types.UID `bun:"project_uid"`
	Size       int64     `bun:"size"`
	Released   time.Time `bun:"released_at"`
}

// Keep records that a repository has a content, and no longer has those with the names in gone. A content that is recorded already stays as it is,
// unless its name is in gone. The error is ErrNotFound if the repository does not exist.
func (s *Store) Keep(ctx context.Context, c Content, gone ...string) error {
	c.Size = min(c.Size, maxSize)
	return s.changeContents(ctx, "recording a content of a container repository", c.RepositoryID, func(ctx context.Context, db bun.IDB) (int64, error) {
		shrunk, err := drop(ctx, db, c.RepositoryID, gone)
		if err != nil {
			return 0, err
		}
		result, err := db.NewInsert().Model(&c).On("CONFLICT (repository_id, name) DO NOTHING").Exec(ctx)
		if err != nil {
			return 0, err
		}
		kept, err := result.RowsAffected()
		return kept*c.Size - shrunk, err
	})
}

// Drop records that a repository no longer has the contents with some names. It does nothing if the repository does not exist.
func (s *Store) Drop(ctx context.Context, id int64, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	err := s.changeContents(ctx, "forgetting contents of a container repository", id, func(ctx context.Context, db bun.IDB) (int64, error) {
		shrunk, err := drop(ctx, db, id, names)
		return -shrunk, err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// changeContents changes the contents of a repository. The function returns by how much they have grown. The record of the repository comes first,
// as it does when the repository is removed, so that two transactions never wait for each other.
func (s *Store) changeContents(ctx context.Context, attempt string, id int64, change func(context.Context, bun.IDB) (int64, error)) error {
	return s.db.Atomically(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		if err := grow(ctx, db, id, 0); err != nil {
			return err
		}
		by, err := change(ctx, db)
		if err != nil || by == 0 {
			return err
		}
		return grow(ctx, db, id, by)
	})
}

// grow adds to the number of bytes of a repository, and locks its record.
func grow(ctx context.Context, db bun.IDB, id, by int64) error {
	result, err := db.NewUpdate().Model((*Repository)(nil)).Set("stored = stored + ?", by).Where("id = ?", id).Exec(ctx)
	return database.Changed(result, err, ErrNotFound)
}

// drop removes contents, and returns the number of their bytes.
func drop(ctx context.Context, db bun.IDB, id int64, names []string) (shrunk int64, err error) {
	for some := range slices.Chunk(names, atOnce) {
		var sizes []int64
		_, err := db.NewDelete().Model((*Content)(nil)).Where("repository_id = ?", id).Where("name IN (?)", bun.List(some)).Returning("size").Exec(ctx, &sizes)
		if err != nil {
			return 0, err
		}
		for _, size := range sizes {
			shrunk += size
		}
	}
	return shrunk, nil
}

// Recorded returns the recorded size of a content of a repository, or ErrNotFound.
func (s *Store) Recorded(ctx context.Context, id int64, name string) (size int64, err error) {
	var found []int64
	err = s.db.Read(ctx, "looking up a content of a container repository", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Content)(nil)).Column("size").Where("repository_id = ?", id).Where("name = ?", name).Scan(ctx, &found)
	})
	if err == nil && len(found) == 0 {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// Contents returns the contents of a repository after a name, in order: at most limit of them.
func (s *Store) Contents(ctx context.Context, id int64, after string, limit int) (page []Content, err error) {
	err = s.db.Read(ctx, "listing the contents of a container repository", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&page).Where("repository_id = ?", id).Where("name > ?", after).Order("name").Limit(int64(limit)).Scan(ctx)
	})
	return page, err
}

// Stored returns the number of bytes of the contents of all repositories of a project, and of those that were deleted and that no garbage collection
// has removed yet. A content of several repositories counts in each.
func (s *Store) Stored(ctx context.Context, project types.UID) (stored int64, err error) {
	err = s.db.Read(ctx, "adding the contents of container repositories", func(ctx context.Context, db bun.IDB) error {
		kept := db.NewSelect().Model((*Repository)(nil)).ColumnExpr("COALESCE(SUM(stored), 0)").Where("project_uid = ?", project)
		released := db.NewSelect().Model((*release)(nil)).ColumnExpr("COALESCE(SUM(size), 0)").Where("project_uid = ?", project)
		return db.NewSelect().ColumnExpr("CAST((?) + (?) AS BIGINT)", kept, released).Scan(ctx, &stored)
	})
	return stored, err
}

// Remove removes the record of a repository whose images are gone, if the record exists. The bytes of the repository count until Forget.
func (s *Store) Remove(ctx context.Context, id int64) error {
	return s.db.Atomically(ctx, "removing the record of a container repository", func(ctx context.Context, db bun.IDB) error {
		var gone []Repository
		if _, err := db.NewDelete().Model((*Repository)(nil)).Where("id = ?", id).Returning("project_uid, stored").Exec(ctx, &gone); err != nil {
			return err
		}
		for _, r := range gone {
			released := &release{ProjectUID: r.ProjectUID, Size: r.Stored, Released: s.clock.Now().UTC()}
			if _, err := db.NewInsert().Model(released).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}
