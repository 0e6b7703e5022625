package issue

import (
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Condition is true of some issues.
type Condition = database.Condition

// Is is true of issues in a state.
func Is(s State) Condition { return database.Where("issue.state = ?", s) }

// Numbered is true of issues with one of the iids.
func Numbered(iids ...int64) Condition { return database.Among("issue.iid", iids) }

// By is true of issues of one of the authors.
func By(authors ...types.UID) Condition { return database.Among("issue.author_uid", authors) }

// Assigned is true of issues with an assignee.
func Assigned() Condition {
	return database.Where("issue.id IN (SELECT issue_id FROM issue_assignees)")
}

// AssignedTo is true of issues that one of the users is assigned to.
func AssignedTo(users ...types.UID) Condition {
	if len(users) == 0 {
		return database.Where("FALSE")
	}
	return database.Where("issue.id IN (SELECT issue_id FROM issue_assignees WHERE user_uid IN (?))", bun.List(users))
}

// Labeled is true of issues with a label.
func Labeled() Condition { return database.Where("issue.id IN (SELECT issue_id FROM issue_labels)") }

// LabeledWith is true of issues with one of the labels.
func LabeledWith(labels ...types.UID) Condition {
	if len(labels) == 0 {
		return database.Where("FALSE")
	}
	return database.Where("issue.id IN (SELECT issue_id FROM issue_labels WHERE label_uid IN (?))", bun.List(labels))
}

// Planned is true of issues with a milestone.
func Planned() Condition { return database.Where("issue.milestone_id IN (SELECT id FROM milestones)") }

// PlannedFor is true of issues whose milestone has a title.
func PlannedFor(title string) Condition {
	return func(db bun.IDB) (string, []any) {
		return "issue.milestone_id IN (?)", []any{milestone.Titled(db, title)}
	}
}

// InMilestone is true of issues with a certain milestone.
func InMilestone(id int64) Condition { return database.Where("issue.milestone_id = ?", id) }

// SeenEpics selects the epics of groups that a viewer can see.
type SeenEpics struct {
	// Groups are the UIDs of the groups. Trusted are the UIDs of those groups in which all confidential epics are seen.
	Groups, Trusted []types.UID
	// Viewer is the UID of the user, who also sees confidential epics as their author; empty for anonymous callers.
	Viewer types.UID
}

// InEpic is true of issues in an epic that is seen.
func InEpic(seen SeenEpics) Condition {
	return database.Where("issue.epic_id IN (SELECT id FROM epics WHERE subject_uid IN (?) AND (NOT confidential OR subject_uid IN (?) OR author_uid = ?))",
		bun.List(seen.Groups), bun.List(seen.Trusted), seen.Viewer)
}

// InEpics is true of issues in one of the epics.
func InEpics(ids ...int64) Condition { return database.Among("issue.epic_id", ids) }

// Weighed is true of issues with a weight.
func Weighed() Condition { return database.Where("issue.weight IS NOT NULL") }

// Weighing is true of issues with a certain weight.
func Weighing(weight int64) Condition {
	return database.Where("COALESCE(issue.weight = ?, FALSE)", weight)
}

// OfType is true of issues of a type.
func OfType(t string) Condition { return database.Where("issue.issue_type = ?", t) }

// Confidential is true of confidential issues.
func Confidential() Condition { return database.Where("issue.confidential") }

// ReactedTo is true of issues to which a user has given a reaction; any reaction if name is empty.
func ReactedTo(user types.UID, name string) Condition {
	return func(db bun.IDB) (string, []any) {
		return "issue.id IN (?)", []any{reaction.Given(db, Kind, user, name)}
	}
}

// Containing is true of issues whose title or description contains a text, in any case.
func Containing(text string, in search.Part) Condition {
	return func(db bun.IDB) (string, []any) {
		return search.Find(db, "issue.id", "issue.text", "issue_texts", in, text)
	}
}

// The times of an issue.
const (
	Created database.TimeColumn = "issue.created_at"
	Updated database.TimeColumn = "issue.updated_at"
)

// HasDue is true of issues with a due date.
func HasDue() Condition { return database.Where("issue.due_date <> ''") }

// Due is true of issues whose due date is not before the day from and before the day to. An empty from stands for any day before to.
func Due(from, to string) Condition {
	return database.Where("issue.due_date <> '' AND issue.due_date >= ? AND issue.due_date < ?", from, to)
}
