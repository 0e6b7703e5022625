// Package revision records the last change of each merge request, issue, pipeline and job, for clients that watch them. It is a table of the activity
// database, which triggers on the tables of these items write. Reactions to an item and approvals are changes of it.
package revision

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open. They need the tables of the packages mergerequest, issue,
// pipeline and reaction.
func Migrations() fs.FS { return migrations }

const (
	// kept is the number of changes for which deleted items are known. The migrations have it too.
	kept = 100_000
	// projectBatch is the number of projects in a query, whose text has a maximum length.
	projectBatch = 1000
)

// ErrExpired says that not all changes since a revision are known.
var ErrExpired = errors.New("the changes since this revision are not known")

// Item is the last change of a merge request, issue, pipeline or job.
type Item struct {
	bun.BaseModel `bun:"table:item_changes"`

	// Kind is mergerequest.Kind, issue.Kind, pipeline.Kind or pipeline.JobKind. The IID of a job is its id.
	Kind    string    `bun:"kind"`
	Project types.UID `bun:"subject_uid"`
	IID     int64     `bun:"iid"`
	ID      int64     `bun:"item_id"`
	State   string    `bun:"state"`
	// Created and Changed are the revisions of the first and the last change.
	Created int64 `bun:"created"`
	Changed int64 `bun:"changed"`
	Deleted bool  `bun:"deleted"`
}

// Store is the changes in a database. It is safe for concurrent use.
type Store struct{ db *database.DB }

// New returns the changes of a database, which must have been opened with Migrations.
func New(db *database.DB) *Store { return &Store{db} }

// Since returns the changes of a kind after a revision, the oldest first, and the revision up to which these are all changes. An item that has
// changed several times appears once. There are at most limit changes.
func (s *Store) Since(ctx context.Context, kind string, after int64, limit int) (changes []Item, revision int64, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the changes of each %s", kind), func(ctx context.Context, db bun.IDB) error {
		if err := db.NewRaw("SELECT last FROM item_revision").Scan(ctx, &revision); err != nil {
			return err
		}
		if after > revision || after < revision-kept {
			return ErrExpired
		}
		if after == revision {
			return nil
		}
		// Later changes can be visible by now. They wait for the next call, as does what they hide.
		return db.NewSelect().Model(&changes).Where("kind = ?", kind).Where("changed > ?", after).Where("changed <= ?", revision).
			Order("changed").Limit(int64(limit)).Scan(ctx)
	})
	if len(changes) == limit {
		revision = changes[limit-1].Changed
	}
	return changes, revision, err
}

// Latest returns the revision of the last change of a kind of items in a project; 0 without any.
func (s *Store) Latest(ctx context.Context, kind string, project types.UID) (revision int64, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("reading the last change of each %s of a project", kind), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model((*Item)(nil)).ColumnExpr("coalesce(max(changed), 0)").Where("kind = ?", kind).Where("subject_uid = ?", project).
			Scan(ctx, &revision)
	})
	return revision, err
}

// Version returns a text that changes with the items of a kind in a project.
func (s *Store) Version(ctx context.Context, kind string, project types.UID) (string, error) {
	latest, err := s.Latest(ctx, kind, project)
	return strconv.FormatInt(latest, 10), err
}

// Query selects items that exist.
type Query struct {
	Kind string
	// Projects are the UIDs of projects; nil for all.
	Projects []types.UID
	// IID and State select items by their values, unless they are empty.
	IID   int64
	State string
	// After is the last item of the previous page; only its project and iid count.
	After Item
	Limit int
}

// List returns a page of items by project and iid, and a revision that they include.
func (s *Store) List(ctx context.Context, q Query) (page []Item, revision int64, err error) {
	err = s.db.Read(ctx, fmt.Sprintf("listing each %s", q.Kind), func(ctx context.Context, db bun.IDB) error {
		if err := db.NewRaw("SELECT last FROM item_revision").Scan(ctx, &revision); err != nil {
			return err
		}
		if q.Projects == nil {
			return q.scan(ctx, db, nil, &page)
		}
		projects := slices.Sorted(slices.Values(q.Projects))
		first, _ := slices.BinarySearch(projects, q.After.Project)
		for some := range slices.Chunk(projects[first:], projectBatch) {
			if err := q.scan(ctx, db, some, &page); err != nil || len(page) == q.Limit {
				return err
			}
		}
		return nil
	})
	return page, revision, err
}

// scan adds items of some projects to a page.
func (q Query) scan(ctx context.Context, db bun.IDB, projects []types.UID, page *[]Item) error {
	var items []Item
	s := db.NewSelect().Model(&items).Where("kind = ?", q.Kind).Where("NOT deleted").Where("(subject_uid, iid) > (?, ?)", q.After.Project, q.After.IID)
	if projects != nil {
		s = s.Where("subject_uid IN (?)", bun.List(projects))
	}
	if q.IID != 0 {
		s = s.Where("iid = ?", q.IID)
	}
	if q.State != "" {
		s = s.Where("state = ?", q.State)
	}
	err := s.Order("subject_uid", "iid").Limit(int64(q.Limit - len(*page))).Scan(ctx)
	*page = append(*page, items...)
	return err
}
