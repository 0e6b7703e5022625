// Package mergerequest stores the merge requests of projects: tables of the activity database.
package mergerequest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/uptrace/bun"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/follower"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/labeling"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Kind is the kind of items that are merge requests.
const Kind = "merge_request"

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the tables, for database.Open.
func Migrations() fs.FS { return migrations }

// State is the state of a merge request.
type State string

// The states. A merge request is locked while it is being merged.
const (
	Opened State = "opened"
	Closed State = "closed"
	Locked State = "locked"
	Merged State = "merged"
)

// MergeStatus says whether the source branch can be merged into the target branch without conflicts.
type MergeStatus string

// The merge statuses. A merge request with conflicts has CannotRecheck after one of its branches has changed.
const (
	Unchecked     MergeStatus = "unchecked"
	Checking      MergeStatus = "checking"
	CanBeMerged   MergeStatus = "can_be_merged"
	CannotMerge   MergeStatus = "cannot_be_merged"
	CannotRecheck MergeStatus = "cannot_be_merged_recheck"
)

// ErrNotFound says that a project has no merge request with an iid.
var ErrNotFound = errors.New("there is no such merge request")

// MergeRequest is a merge request of a project, which has the target branch.
type MergeRequest struct {
	bun.BaseModel `bun:"table:merge_requests"`

	ID int64 `bun:"id,pk,autoincrement"`
	// In is the target project, and Source the project that has the source branch. They are equal unless Source is a fork.
	In           database.Subject `bun:"embed:subject_"`
	IID          int64            `bun:"iid"`
	Source       database.Subject `bun:"embed:source_"`
	SourceBranch string           `bun:"source_branch"`
	TargetBranch string           `bun:"target_branch"`
	Title        string           `bun:"title"`
	Description  string           `bun:"description"`
	// Text is the text for searches, and Draft what the title says. The store writes them; it does not read Text.
	Text  string `bun:"text"`
	Draft bool   `bun:"draft"`
	State State  `bun:"state"`
	// DiscussionLocked is nil until the discussion is locked.
	DiscussionLocked *bool `bun:"discussion_locked"`
	// Squash, RemoveSourceBranch and AllowCollaboration are what the author asks for.
	Squash             bool `bun:"squash"`
	RemoveSourceBranch bool `bun:"remove_source_branch"`
	AllowCollaboration bool `bun:"allow_collaboration"`
	// ApprovalsRequired is the number of approvals that the author asks for, beside those of rules and the project.
	ApprovalsRequired int64         `bun:"approvals_required"`
	Author            database.User `bun:"embed:author_"`
	// MilestoneID is 0 without one.
	MilestoneID int64 `bun:"milestone_id"`
	// Head, Base and Start are the commits of the latest version: the source branch, its merge base with the target branch, and the target branch at
	// that time. They are empty if there is no version. They stay when the source branch is deleted.
	Head  string `bun:"head_sha"`
	Base  string `bun:"base_sha"`
	Start string `bun:"start_sha"`
	// ChangesCount is the number of changed files, such as 3 or 1000+; empty while it is unknown.
	ChangesCount string      `bun:"changes_count"`
	MergeStatus  MergeStatus `bun:"merge_status"`
	// CheckedTarget is the head of the target branch for which MergeStatus was found out; empty if a branch did not exist.
	CheckedTarget string `bun:"checked_target"`
	// MergeError is the reason why the last merge failed.
	MergeError string `bun:"merge_error"`
	// PlannedCommit and PlannedSquash are the commits of the last merge that was begun.
	PlannedCommit string `bun:"planned_commit"`
	PlannedSquash string `bun:"planned_squash"`
	MergeCommit   string `bun:"merge_commit_sha"`
	SquashCommit  string `bun:"squash_commit_sha"`
	// ShouldRemoveSource is the choice of the merge; nil before.
	ShouldRemoveSource *bool         `bun:"should_remove_source"`
	Merger             database.User `bun:"embed:merger_"`
	MergedAt           time.Time     `bun:"merged_at,nullzero"`
	// AutoMerge is the merge that waits, or has waited, for a pipeline, and AutoMergePipeline the id of that pipeline; zero without one.
	AutoMerge         *AutoMerge `bun:"auto_merge,type:text"`
	AutoMergePipeline int64      `bun:"auto_merge_pipeline"`
	// Closer is the user who closed the merge request. Closer and ClosedAt are empty unless it is closed.
	Closer   database.User `bun:"embed:closer_"`
	ClosedAt time.Time     `bun:"closed_at,nullzero"`
	// PreparedAt is the time at which the first version was recorded and checked.
	PreparedAt time.Time `bun:"prepared_at,nullzero"`
	// Estimate and Spent are times in seconds.
	Estimate int64     `bun:"time_estimate"`
	Spent    int64     `bun:"time_spent"`
	Created  time.Time `bun:"created_at"`
	Updated  time.Time `bun:"updated_at"`

	// Labels, Assignees and Reviewers are in tables of their own.
	Labels    []Label         `bun:"-"`
	Assignees []database.User `bun:"-"`
	Reviewers []database.User `bun:"-"`
}

// Label is a label of a merge request.
type Label = database.Label

// Item identifies the merge request in its notes, reactions and state events.
func (m MergeRequest) Item() database.Item { return database.Item{Kind: Kind, ID: m.ID} }

// RemovesSource reports whether the merge deletes the source branch.
func (m MergeRequest) RemovesSource() bool {
	if m.ShouldRemoveSource != nil {
		return *m.ShouldRemoveSource
	}
	return m.RemoveSourceBranch
}

// DiscussionIsLocked reports whether only members can write notes.
func (m MergeRequest) DiscussionIsLocked() bool {
	return m.DiscussionLocked != nil && *m.DiscussionLocked
}

var draft = regexp.MustCompile(`(?i)^\s*(draft:|\[draft\]|\(draft\))`)

// IsDraft reports whether a merge request with a title is a draft (API behaviour, section 2.5).
func IsDraft(title string) bool { return draft.MatchString(title) }

// Store is the merge requests in a database. It is safe for concurrent use.
type Store struct {
	follower.Choices

	db     *database.DB
	clock  clock.PassiveClock
	counts database.Counts
}

// New returns the merge requests of a database. The database must have been opened with Migrations and iid.Migrations.
func New(db *database.DB, c clock.PassiveClock) *Store {
	return &Store{follower.New(db, "merge_request_subscriptions", "merge_request_id"), db, c, database.NewCounts()}
}

// Labels are the labels of merge requests.
func (s *Store) Labels() labeling.Rows {
	return labeling.New(s.db, "merge_request_labels", "merge_request_id")
}

// DuplicateError says that a source branch already has an open merge request into the target branch.
type DuplicateError struct {
	// IID is the iid of the open merge request in the target project.
	IID int64
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("Another open merge request already exists for this source branch: !%d", e.IID)
}

// derive sets the fields that follow from others.
func (m *MergeRequest) derive() {
	m.Text, m.Draft = search.Fold(m.Title, m.Description), IsDraft(m.Title)
}

// Create adds a merge request with its labels, assignees and reviewers, and completes it. The error is a *DuplicateError if there is an open one.
func (s *Store) Create(ctx context.Context, m *MergeRequest) error {
	m.Created = s.clock.Now().UTC()
	m.Updated, m.State, m.MergeStatus = m.Created, Opened, Unchecked
	m.derive()
	return s.db.Atomically(ctx, fmt.Sprintf("creating a merge request in %s", m.In), func(ctx context.Context, db bun.IDB) (err error) {
		// The number comes first: it makes other creations in the project wait.
		if m.IID, err = iid.Next(ctx, s.db, m.In, Kind); err != nil {
			return err
		}
		if err := s.unique(ctx, db, *m); err != nil {
			return err
		}
		if _, err = db.NewInsert().Model(m).Returning("id").Exec(ctx); err != nil {
			return err
		}
		return attach(ctx, db, m)
	})
}

// unique returns a *DuplicateError if another merge request of the branches is open.
func (s *Store) unique(ctx context.Context, db bun.IDB, m MergeRequest) error {
	var iids []int64
	err := db.NewSelect().Model((*MergeRequest)(nil)).Column("iid").Where("source_uid = ?", m.Source.UID).Where("source_branch = ?", m.SourceBranch).
		Where("subject_uid = ?", m.In.UID).Where("target_branch = ?", m.TargetBranch).Where("state IN (?)", bun.List([]State{Opened, Locked})).
		Where("id <> ?", m.ID).Limit(1).Scan(ctx, &iids)
	if err == nil && len(iids) > 0 {
		err = &DuplicateError{iids[0]}
	}
	return err
}
