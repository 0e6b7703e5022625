// Package record has the records of the repositories of images, in the activity database. The images themselves are in the storage of the
// registry, in a place that the record names. So images stay where they are when a project is renamed or transferred, and the next holder of a
// name never sees the images of the former one.
package record

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// Errors of a Store.
var (
	// ErrNotFound says that the repository does not exist.
	ErrNotFound = errors.New("there is no such container repository")
	// ErrDeleted says that the repository is being deleted, so that it takes no changes.
	ErrDeleted = errors.New("the container repository is being deleted: try again when it is gone")
	// ErrTooMany says that a project has as many repositories as it can have.
	ErrTooMany = fmt.Errorf("the project has %d container repositories, which is the limit: delete some first", maxInProject)
)

// maxInProject is the maximum number of repositories in a project. Everybody who can push to the project can create them.
const maxInProject = 5000

// Status is the state of a repository, as the REST API shows it ("Container registry repository" of the core interface document).
type Status string

// The states of a repository. One in use has none.
const (
	DeleteScheduled Status = "delete_scheduled"
	DeleteOngoing   Status = "delete_ongoing"
)

// Repository is a repository of images.
type Repository struct {
	bun.BaseModel `bun:"table:container_repositories"`

	ID         int64     `bun:"id,pk,autoincrement"`
	ProjectID  int64     `bun:"project_id"`
	ProjectUID types.UID `bun:"project_uid"`
	// Name is the part of the name that follows the path of the project. It is empty for the repository with the path of the project.
	Name string `bun:"name"`
	// Place is the name of the place of the images in the storage. It is random: a database that was restored from a backup forgets ids, but
	// no later repository gets the place of a forgotten one.
	Place   string    `bun:"place"`
	Created time.Time `bun:"created_at"`
	// Status is empty for a repository in use.
	Status Status `bun:"status"`
	// Cleanup is the time at which the last cleanup began, or the zero time.
	Cleanup time.Time `bun:"cleanup_at,nullzero"`
	// Changes counts the changes of tags. Data that was read at one count is up to date until the count changes.
	Changes int64 `bun:"changes"`
	// Size is the number of bytes of the images, and Sized the count of changes at which it was measured.
	Size  int64 `bun:"size"`
	Sized int64 `bun:"sized"`
	// Stored is the number of bytes of all contents, of images without a tag and unfinished uploads as well.
	Stored int64 `bun:"stored"`
}

// Store is the records in a database. It is safe for concurrent use.
type Store struct {
	db    *database.DB
	clock clock.PassiveClock
}

// New returns the store in a database that was opened with Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store { return &Store{db, c} }

// Ensure returns the repository of a project with a name, and creates it if it does not exist. The error is ErrTooMany if the project has too
// many already.
func (s *Store) Ensure(ctx context.Context, projectID int64, project types.UID, name string) (Repository, error) {
	r, err := s.Find(ctx, project, name)
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	created := &Repository{ProjectID: projectID, ProjectUID: project, Name: name, Place: strings.ToLower(rand.Text()), Created: s.clock.Now().UTC()}
	err = s.db.Write(ctx, "creating a container repository", func(ctx context.Context, db bun.IDB) error {
		count, err := db.NewSelect().Model((*Repository)(nil)).Where("project_uid = ?", project).Count(ctx)
		if err == nil && count >= maxInProject {
			err = ErrTooMany
		}
		if err != nil {
			return err
		}
		_, err = db.NewInsert().Model(created).On("CONFLICT (project_uid, name) DO NOTHING").Returning("NULL").Exec(ctx)
		return err
	})
	if err != nil {
		return Repository{}, err
	}
	return s.Find(ctx, project, name)
}

// Find returns the repository of a project with a name, or ErrNotFound.
func (s *Store) Find(ctx context.Context, project types.UID, name string) (Repository, error) {
	return s.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("project_uid = ?", project).Where("name = ?", name)
	})
}

// Get returns the repository with an id, or ErrNotFound.
func (s *Store) Get(ctx context.Context, id int64) (Repository, error) {
	return s.one(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id = ?", id) })
}

func (s *Store) one(ctx context.Context, where func(*bun.SelectQuery) *bun.SelectQuery) (r Repository, err error) {
	err = s.db.Read(ctx, "reading a container repository", func(ctx context.Context, db bun.IDB) error {
		err := where(db.NewSelect().Model(&r)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		return err
	})
	r.Created, r.Cleanup = r.Created.UTC(), r.Cleanup.UTC()
	return r, err
}

// atOnce is the maximum number of projects, places or contents that one statement names. Both databases allow more parameters.
const atOnce = 5000

// Of returns the repositories of projects, in the order of their ids: at most limit of them after skip, and how many there are.
func (s *Store) Of(ctx context.Context, projects []types.UID, skip, limit int) (page []Repository, total int, err error) {
	var ids []int64
	for some := range slices.Chunk(projects, atOnce) {
		var found []int64
		err := s.db.Read(ctx, "listing container repositories", func(ctx context.Context, db bun.IDB) error {
			return db.NewSelect().Model((*Repository)(nil)).Column("id").Where("project_uid IN (?)", bun.List(some)).Order("id").Scan(ctx, &found)
		})
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	total = len(ids)
	ids = ids[min(skip, total):min(skip+limit, total)]
	if len(ids) == 0 {
		return nil, total, nil
	}
	err = s.db.Read(ctx, "listing container repositories", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&page).Where("id IN (?)", bun.List(ids)).Order("id").Scan(ctx)
	})
	return page, total, err
}

// Places returns the given places that belong to records.
func (s *Store) Places(ctx context.Context, of []string) (known []string, err error) {
	err = s.db.Read(ctx, "looking up container repositories", func(ctx context.Context, db bun.IDB) error {
		known = nil
		for some := range slices.Chunk(of, atOnce) {
			var found []string
			if err := db.NewSelect().Model((*Repository)(nil)).Column("place").Where("place IN (?)", bun.List(some)).Scan(ctx, &found); err != nil {
				return err
			}
			known = append(known, found...)
		}
		return nil
	})
	return known, err
}

// After returns the next repositories in the order of their ids after an id, of all projects: at most limit of them.
func (s *Store) After(ctx context.Context, id int64, limit int) (page []Repository, err error) {
	err = s.db.Read(ctx, "listing container repositories", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&page).Where("id > ?", id).Order("id").Limit(int64(limit)).Scan(ctx)
	})
	return page, err
}

// Removing marks a repository as being deleted: it is scheduled first, and ongoing when the work begins. It never goes back: the error is
// ErrDeleted if a deletion cannot be scheduled because it is scheduled or ongoing already.
func (s *Store) Removing(ctx context.Context, id int64, status Status) error {
	return s.update(ctx, "deleting a container repository", id, func(q *bun.UpdateQuery) *bun.UpdateQuery {
		q = q.Set("status = ?", status)
		if status == DeleteScheduled {
			q = q.Where("status = ''")
		}
		return q
	})
}

// Adopt gives the repositories of a project that is gone to the one that succeeds it, except those whose name it has already.
func (s *Store) Adopt(ctx context.Context, former types.UID, projectID int64, project types.UID) error {
	return s.db.Write(ctx, "adopting container repositories", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*Repository)(nil)).Set("project_id = ?", projectID).Set("project_uid = ?", project).
			Where("project_uid = ?", former).
			Where("name NOT IN (?)", db.NewSelect().Model((*Repository)(nil)).ModelTableExpr("container_repositories AS own").Column("own.name").Where("own.project_uid = ?", project)).
			Exec(ctx)
		return err
	})
}

// update changes a repository. The error is ErrDeleted if where excludes it, and ErrNotFound if it does not exist.
func (s *Store) update(ctx context.Context, attempt string, id int64, set func(*bun.UpdateQuery) *bun.UpdateQuery) error {
	var changed int64
	err := s.db.Write(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		result, err := set(db.NewUpdate().Model((*Repository)(nil)).Where("id = ?", id)).Exec(ctx)
		if err != nil {
			return err
		}
		changed, err = result.RowsAffected()
		return err
	})
	if err != nil || changed > 0 {
		return err
	}
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	return ErrDeleted
}

// Referrer is a manifest that refers to another one as its subject (OCI distribution specification 1.1, "Listing Referrers").
type Referrer struct {
	bun.BaseModel `bun:"table:container_referrers"`

	RepositoryID int64  `bun:"repository_id,pk"`
	Subject      string `bun:"subject,pk"`
	Digest       string `bun:"digest,pk"`
	ArtifactType string `bun:"artifact_type"`
	// Descriptor is the descriptor of the manifest in JSON.
	Descriptor string `bun:"descriptor"`
}

// Refer records a referrer.
func (s *Store) Refer(ctx context.Context, r Referrer) error {
	return s.db.Write(ctx, "recording a referrer", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewInsert().Model(&r).On("CONFLICT (repository_id, subject, digest) DO NOTHING").Exec(ctx)
		return err
	})
}

// Unrefer removes what is recorded of a manifest as a referrer.
func (s *Store) Unrefer(ctx context.Context, id int64, digest string) error {
	return s.db.Write(ctx, "removing a referrer", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewDelete().Model((*Referrer)(nil)).Where("repository_id = ?", id).Where("digest = ?", digest).Exec(ctx)
		return err
	})
}

// ReferrersAfter returns the digests of all referrers in a repository in order, after a digest: at most limit of them.
func (s *Store) ReferrersAfter(ctx context.Context, id int64, after string, limit int) (digests []string, err error) {
	err = s.db.Read(ctx, "listing referrers", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Referrer)(nil)).Column("digest").Where("repository_id = ?", id).Where("digest > ?", after).
			Order("digest").Limit(int64(limit)).Scan(ctx, &digests)
	})
	return digests, err
}

// Referrers returns the referrers of a subject in the order of their digests, after a digest. If artifactType is not empty, it returns only
// those of that type.
func (s *Store) Referrers(ctx context.Context, id int64, subject, artifactType, after string, limit int) (found []Referrer, err error) {
	err = s.db.Read(ctx, "listing referrers", func(ctx context.Context, db bun.IDB) error {
		q := db.NewSelect().Model(&found).Where("repository_id = ?", id).Where("subject = ?", subject).Where("digest > ?", after)
		if artifactType != "" {
			q = q.Where("artifact_type = ?", artifactType)
		}
		return q.Order("digest").Limit(int64(limit)).Scan(ctx)
	})
	return found, err
}
