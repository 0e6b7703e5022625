package storagemove

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table, for database.Open.
func Migrations() fs.FS { return migrations }

// ErrNotRecorded says that the history has no move with an id.
var ErrNotRecorded = errors.New("there is no such move")

// ErrIDTaken is returned if an earlier move has an id, so that the new move must have pinned it.
var ErrIDTaken = errors.New("the history has an earlier move with this id")

// Move is a move in the history, which has it forever.
type Move struct {
	ID  int64
	UID types.UID
	// Created is the time at which the StorageMove was created.
	Created time.Time
	State   v1alpha1.StorageMoveState
	// Source and Destination are empty until the move is scheduled.
	Source, Destination string
	Project             Project
}

// Project is the project of a move as it was last seen.
type Project struct {
	UID               types.UID `json:"-"`
	ID                int64     `json:"id"`
	Description       string    `json:"description"`
	Name              string    `json:"name"`
	NameWithNamespace string    `json:"nameWithNamespace"`
	Path              string    `json:"path"`
	PathWithNamespace string    `json:"pathWithNamespace"`
	Created           time.Time `json:"created"`
}

// row is a Move in the database.
type row struct {
	bun.BaseModel `bun:"table:storage_moves"`

	ID          int64                     `bun:"id,pk"`
	UID         types.UID                 `bun:"uid"`
	CreatedAt   time.Time                 `bun:"created_at"`
	State       v1alpha1.StorageMoveState `bun:"state"`
	Source      string                    `bun:"source"`
	Destination string                    `bun:"destination"`
	ProjectUID  types.UID                 `bun:"project_uid"`
	Project     string                    `bun:"project"`
}

// History is the moves in a database. It is safe for concurrent use.
type History struct{ db *database.DB }

// NewHistory returns the history in a database that was opened with Migrations.
func NewHistory(db *database.DB) *History { return &History{db} }

// Of returns the record of a move for the history. The scope is about the project of the move.
func Of(m *v1alpha1.StorageMove, s catalog.Scope) Move {
	p := s.Project
	name := catalog.Title(p.Spec.Name, p.Spec.Path)
	full := name
	for _, g := range s.Groups {
		full = catalog.Title(g.Spec.Name, g.Spec.Path) + " / " + full
	}
	return Move{
		ID: m.RESTID(), UID: m.UID, Created: m.CreationTimestamp.Time, State: m.Status.State, Source: m.Status.Source, Destination: m.Status.Destination,
		Project: Project{
			UID: p.UID, ID: p.RESTID(), Description: p.Spec.Description, Name: name, NameWithNamespace: full,
			Path: p.Spec.Path, PathWithNamespace: s.Path(), Created: p.CreationTimestamp.Time,
		},
	}
}

// Record writes a move, in place of what the history has of it. The error is ErrIDTaken if an earlier move has the id.
func (h *History) Record(ctx context.Context, m Move) error { return h.write(ctx, m, true) }

// Begin writes a move unless the history has it already, perhaps in a later state.
func (h *History) Begin(ctx context.Context, m Move) error { return h.write(ctx, m, false) }

func (h *History) write(ctx context.Context, m Move, replace bool) error {
	project, err := json.Marshal(m.Project)
	if err != nil {
		return fmt.Errorf("recording move %d: %w", m.ID, err)
	}
	r := &row{
		ID: m.ID, UID: m.UID, CreatedAt: m.Created.UTC(), State: m.State, Source: m.Source, Destination: m.Destination,
		ProjectUID: m.Project.UID, Project: string(project),
	}
	return h.db.Write(ctx, fmt.Sprintf("recording move %d", m.ID), func(ctx context.Context, db bun.IDB) error {
		insert := db.NewInsert().Model(r)
		if replace {
			insert = insert.On("CONFLICT (id) DO UPDATE").Set("state = EXCLUDED.state").Set("source = EXCLUDED.source").
				Set("destination = EXCLUDED.destination").Set("project = EXCLUDED.project").Where("?TableAlias.uid = EXCLUDED.uid")
		} else {
			insert = insert.On("CONFLICT (id) DO NOTHING")
		}
		written, err := insert.Exec(ctx)
		if err != nil || !replace {
			return err
		}
		if rows, err := written.RowsAffected(); err != nil || rows > 0 {
			return err
		}
		return ErrIDTaken
	})
}

// Has reports whether the history has a move with an id.
func (h *History) Has(ctx context.Context, id int64) (bool, error) {
	switch _, err := h.Get(ctx, id); {
	case errors.Is(err, ErrNotRecorded):
		return false, nil
	default:
		return err == nil, err
	}
}

// End writes the state of a move whose project is gone. It does nothing if the history does not have the move.
func (h *History) End(ctx context.Context, m *v1alpha1.StorageMove, state v1alpha1.StorageMoveState) error {
	return h.db.Write(ctx, fmt.Sprintf("recording the end of move %d", m.RESTID()), func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*row)(nil)).Set("state = ?", state).Set("source = ?", m.Status.Source).Set("destination = ?", m.Status.Destination).
			Where("id = ?", m.RESTID()).Where("uid = ?", m.UID).Exec(ctx)
		return err
	})
}

// Get returns the move with an id. The error is ErrNotRecorded if the history has no such move.
func (h *History) Get(ctx context.Context, id int64) (Move, error) {
	var r row
	err := h.db.Read(ctx, fmt.Sprintf("reading move %d", id), func(ctx context.Context, db bun.IDB) error {
		err := db.NewSelect().Model(&r).Where("id = ?", id).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotRecorded
		}
		return err
	})
	if err != nil {
		return Move{}, err
	}
	return r.move()
}

// Open returns the moves that are not in a final state.
func (h *History) Open(ctx context.Context) ([]Move, error) {
	var rows []row
	err := h.db.Read(ctx, "listing moves that have not ended", func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&rows).Where("state NOT IN (?)", bun.List(
			[]v1alpha1.StorageMoveState{v1alpha1.StorageMoveFinished, v1alpha1.StorageMoveFailed, v1alpha1.StorageMoveCleanupFailed})).Scan(ctx)
	})
	if err != nil {
		return nil, err
	}
	return moves(rows)
}

// List returns some moves, the newest first, and how many there are. If project is not empty, it returns only moves of that project.
func (h *History) List(ctx context.Context, project types.UID, skip, limit int) (some []Move, total int, err error) {
	var rows []row
	err = h.db.Read(ctx, "listing moves", func(ctx context.Context, db bun.IDB) error {
		query := db.NewSelect().Model(&rows).Order("created_at DESC", "id DESC").Offset(int64(skip)).Limit(int64(limit))
		if project != "" {
			query = query.Where("project_uid = ?", project)
		}
		n, err := query.ScanAndCount(ctx)
		total = int(n)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	some, err = moves(rows)
	return some, total, err
}

func moves(rows []row) (all []Move, err error) {
	all = make([]Move, len(rows))
	for i := range rows {
		if all[i], err = rows[i].move(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *row) move() (Move, error) {
	m := Move{
		ID: r.ID, UID: r.UID, Created: r.CreatedAt.UTC(), State: r.State, Source: r.Source, Destination: r.Destination,
	}
	if err := json.Unmarshal([]byte(r.Project), &m.Project); err != nil {
		return Move{}, fmt.Errorf("reading the project of move %d: %w", r.ID, err)
	}
	m.Project.UID = r.ProjectUID
	return m, nil
}
