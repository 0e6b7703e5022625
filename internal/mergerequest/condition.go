package mergerequest

import (
	"time"

	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Condition is true of some merge requests. It is never unknown, so Not is true of all others.
type Condition func(db bun.IDB) (query string, args []any)

func where(query string, args ...any) Condition {
	return func(bun.IDB) (string, []any) { return query, args }
}

// among is true if a column has one of some values.
func among[T any](column string, values []T) Condition {
	if len(values) == 0 {
		return where("FALSE")
	}
	return where("merge_request."+column+" IN (?)", bun.List(values))
}

// Not is true of the merge requests of which c is not true.
func Not(c Condition) Condition {
	return func(db bun.IDB) (string, []any) {
		query, args := c(db)
		return "NOT (" + query + ")", args
	}
}

// Is is true of merge requests in a state.
func Is(s State) Condition { return where("merge_request.state = ?", s) }

// Numbered is true of merge requests with one of the iids.
func Numbered(iids ...int64) Condition { return among("iid", iids) }

// By is true of merge requests of one of the authors.
func By(authors ...types.UID) Condition { return among("author_uid", authors) }

// Assigned is true of merge requests with an assignee.
func Assigned() Condition {
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_assignees)")
}

// AssignedTo is true of merge requests that one of the users is assigned to.
func AssignedTo(users ...types.UID) Condition {
	if len(users) == 0 {
		return where("FALSE")
	}
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_assignees WHERE user_uid IN (?))", bun.List(users))
}

// Reviewed is true of merge requests with a reviewer.
func Reviewed() Condition {
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_reviewers)")
}

// ReviewedBy is true of merge requests that one of the users reviews.
func ReviewedBy(users ...types.UID) Condition {
	if len(users) == 0 {
		return where("FALSE")
	}
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_reviewers WHERE user_uid IN (?))", bun.List(users))
}

// Approved is true of merge requests with an approval.
func Approved() Condition {
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_approvals)")
}

// ApprovedBy is true of merge requests that a user has approved.
func ApprovedBy(user types.UID) Condition {
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_approvals WHERE user_uid = ?)", user)
}

// FullyApproved is true of merge requests with as many approvals as they require.
func FullyApproved() Condition {
	return where("(SELECT count(*) FROM merge_request_approvals AS a WHERE a.merge_request_id = merge_request.id) >= merge_request.approvals_required")
}

// From is true of merge requests of a source branch.
func From(branch string) Condition { return where("merge_request.source_branch = ?", branch) }

// Into is true of merge requests into a target branch.
func Into(branch string) Condition { return where("merge_request.target_branch = ?", branch) }

// Drafts is true of drafts.
func Drafts() Condition { return where("merge_request.draft") }

// Labeled is true of merge requests with a label.
func Labeled() Condition {
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_labels)")
}

// LabeledWith is true of merge requests with one of the labels.
func LabeledWith(labels ...types.UID) Condition {
	if len(labels) == 0 {
		return where("FALSE")
	}
	return where("merge_request.id IN (SELECT merge_request_id FROM merge_request_labels WHERE label_uid IN (?))", bun.List(labels))
}

// Planned is true of merge requests with a milestone.
func Planned() Condition { return where("merge_request.milestone_id IN (SELECT id FROM milestones)") }

// PlannedFor is true of merge requests whose milestone has a title.
func PlannedFor(title string) Condition {
	return func(db bun.IDB) (string, []any) {
		return "merge_request.milestone_id IN (?)", []any{milestone.Titled(db, title)}
	}
}

// InMilestone is true of merge requests with a certain milestone.
func InMilestone(id int64) Condition { return where("merge_request.milestone_id = ?", id) }

// ReactedTo is true of merge requests to which a user has given a reaction; any reaction if name is empty.
func ReactedTo(user types.UID, name string) Condition {
	return func(db bun.IDB) (string, []any) {
		return "merge_request.id IN (?)", []any{reaction.Given(db, Kind, user, name)}
	}
}

// Containing is true of merge requests whose title or description contains a text, in any case.
func Containing(text string, in search.Part) Condition {
	return func(db bun.IDB) (string, []any) {
		return search.Find(db, "merge_request.id", "merge_request.text", "merge_request_texts", in, text)
	}
}

// Time is a time of a merge request.
type Time string

// The times.
const (
	Created Time = "created_at"
	Updated Time = "updated_at"
)

// Since is true of merge requests whose time is not before at.
func (t Time) Since(at time.Time) Condition {
	return where("merge_request."+string(t)+" >= ?", database.Time(at))
}

// Until is true of merge requests whose time is not after at.
func (t Time) Until(at time.Time) Condition {
	return where("merge_request."+string(t)+" <= ?", database.Time(at))
}
