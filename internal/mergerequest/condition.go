package mergerequest

import (
	"github.com/uptrace/bun"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/reaction"
	"github.com/forgeplane/forgeplane/internal/search"
)

// Condition is true of some merge requests.
type Condition = database.Condition

// joins is true if a table has rows that belong to the merge request, and joined if one of them has one of some values in a column.
func joins(table string) Condition {
	return database.Where("merge_request.id IN (SELECT merge_request_id FROM " + table + ")")
}

func joined(table, column string, values []types.UID) Condition {
	if len(values) == 0 {
		return database.Where("FALSE")
	}
	return database.Where("merge_request.id IN (SELECT merge_request_id FROM "+table+" WHERE "+column+" IN (?))", bun.List(values))
}

// Is is true of merge requests in a state.
func Is(s State) Condition { return database.Where("merge_request.state = ?", s) }

// Numbered is true of merge requests with one of the iids.
func Numbered(iids ...int64) Condition { return database.Among("merge_request.iid", iids) }

// By is true of merge requests of one of the authors.
func By(authors ...types.UID) Condition { return database.Among("merge_request.author_uid", authors) }

// Assigned is true of merge requests with an assignee.
func Assigned() Condition { return joins("merge_request_assignees") }

// AssignedTo is true of merge requests that one of the users is assigned to.
func AssignedTo(users ...types.UID) Condition {
	return joined("merge_request_assignees", "user_uid", users)
}

// Reviewed is true of merge requests with a reviewer.
func Reviewed() Condition { return joins("merge_request_reviewers") }

// ReviewedBy is true of merge requests that one of the users reviews.
func ReviewedBy(users ...types.UID) Condition {
	return joined("merge_request_reviewers", "user_uid", users)
}

// Approved is true of merge requests with an approval.
func Approved() Condition { return joins("merge_request_approvals") }

// ApprovedBy is true of merge requests that one of the users has approved.
func ApprovedBy(users ...types.UID) Condition {
	return joined("merge_request_approvals", "user_uid", users)
}

// Demand has the requirements of a project for the approvals of its merge requests.
type Demand struct {
	Project types.UID
	// Required is the number of approvals by anybody. Rules ask for more.
	Required int64
	// AllowAuthor says that the approval of the author counts.
	AllowAuthor bool
	Rules       []ApprovalRule
}

const (
	// count is the number of approvals of a merge request.
	count = "(SELECT count(*) FROM merge_request_approvals AS a WHERE a.merge_request_id = merge_request.id"
	// byOthers is true of approvals by other users than the author.
	byOthers = " AND a.user_uid <> merge_request.author_uid"
)

// condition is true of merge requests of other projects, and of those with the approvals.
func (d Demand) condition() (query string, args []any) {
	count := count
	if !d.AllowAuthor {
		count += byOthers
	}
	query, args = count+") >= ?", []any{d.Required}
	for _, r := range d.Rules {
		query += " AND " + count
		if len(r.Approvers) > 0 {
			users := []types.UID{""} // a list must not be empty
			for _, a := range r.Approvers {
				if a.Kind == KindUser {
					users = append(users, a.UID)
				}
			}
			query, args = query+" AND a.user_uid IN (?)", append(args, bun.List(users))
		}
		query, args = query+") >= ?", append(args, r.Required)
	}
	return " AND (merge_request.subject_uid <> ? OR " + query + ")", append([]any{d.Project}, args...)
}

// FullyApproved is true of merge requests with as many approvals as they, their rules and their projects require. Projects without a Demand do not
// allow approvals by authors. For a rule with approvers it counts the approvals of its users: the members of groups are not in the database.
func FullyApproved(demands ...Demand) Condition {
	allowing := []types.UID{""} // a list must not be empty
	for _, d := range demands {
		if d.AllowAuthor {
			allowing = append(allowing, d.Project)
		}
	}
	counted := count + " AND (a.user_uid <> merge_request.author_uid OR merge_request.subject_uid IN (?))"
	query, args := counted+") >= merge_request.approvals_required"+
		" AND NOT EXISTS (SELECT 1 FROM merge_request_approval_rules AS r WHERE r.merge_request_id = merge_request.id AND r.approvals_required > "+counted+
		" AND (NOT EXISTS (SELECT 1 FROM merge_request_approvers AS p WHERE p.rule_id = r.id) OR EXISTS (SELECT 1 FROM merge_request_approvers AS p"+
		" WHERE p.rule_id = r.id AND p.approver_kind = 'user' AND p.approver_uid = a.user_uid))))", []any{bun.List(allowing), bun.List(allowing)}
	for _, d := range demands {
		if d.Required == 0 && len(d.Rules) == 0 {
			continue
		}
		more, of := d.condition()
		query, args = query+more, append(args, of...)
	}
	return database.Where(query, args...)
}

// named selects the users whom the rules of a merge request name as approvers.
const named = "SELECT 1 FROM merge_request_approval_rules AS r JOIN merge_request_approvers AS p ON p.rule_id = r.id" +
	" WHERE r.merge_request_id = merge_request.id AND p.approver_kind = 'user'"

// NamingApprover is true of merge requests with a rule that names a user as approver.
func NamingApprover() Condition { return database.Where("EXISTS (" + named + ")") }

// NamingApprovers is true of merge requests with a rule that names one of the users as approver.
func NamingApprovers(users ...types.UID) Condition {
	if len(users) == 0 {
		return database.Where("FALSE")
	}
	return database.Where("EXISTS ("+named+" AND p.approver_uid IN (?))", bun.List(users))
}

// From is true of merge requests of a source branch.
func From(branch string) Condition { return database.Where("merge_request.source_branch = ?", branch) }

// Into is true of merge requests into a target branch.
func Into(branch string) Condition { return database.Where("merge_request.target_branch = ?", branch) }

// Drafts is true of drafts.
func Drafts() Condition { return database.Where("merge_request.draft") }

// Labeled is true of merge requests with a label.
func Labeled() Condition { return joins("merge_request_labels") }

// LabeledWith is true of merge requests with one of the labels.
func LabeledWith(labels ...types.UID) Condition {
	return joined("merge_request_labels", "label_uid", labels)
}

// Planned is true of merge requests with a milestone.
func Planned() Condition {
	return database.Where("merge_request.milestone_id IN (SELECT id FROM milestones)")
}

// PlannedFor is true of merge requests whose milestone has a title.
func PlannedFor(title string) Condition {
	return func(db bun.IDB) (string, []any) {
		return "merge_request.milestone_id IN (?)", []any{milestone.Titled(db, title)}
	}
}

// InMilestone is true of merge requests with a certain milestone.
func InMilestone(id int64) Condition { return database.Where("merge_request.milestone_id = ?", id) }

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

// The times of a merge request.
const (
	Created database.TimeColumn = "merge_request.created_at"
	Updated database.TimeColumn = "merge_request.updated_at"
)
