package issues

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/milestone"
	"github.com/forgeplane/forgeplane/internal/note"
	"github.com/forgeplane/forgeplane/internal/reaction"
)

// Issue is an issue as clients see it.
type Issue struct {
	ID                 int64                 `json:"id"`
	IID                int64                 `json:"iid"`
	ProjectID          int64                 `json:"project_id"`
	Title              string                `json:"title"`
	Description        *string               `json:"description"`
	State              issue.State           `json:"state" doc:"opened or closed."`
	CreatedAt          endpoint.Time         `json:"created_at"`
	UpdatedAt          endpoint.Time         `json:"updated_at"`
	ClosedAt           endpoint.Time         `json:"closed_at"`
	ClosedBy           *entity.UserSummary   `json:"closed_by"`
	Labels             any                   `json:"labels" doc:"Titles of the labels, or objects if the request asks for details."`
	Milestone          *entity.Milestone     `json:"milestone"`
	Assignees          []*entity.UserSummary `json:"assignees"`
	Author             *entity.UserSummary   `json:"author" doc:"Null if the user is gone."`
	Type               string                `json:"type" doc:"The type of the issue, in capitals."`
	Assignee           *entity.UserSummary   `json:"assignee" doc:"The first assignee."`
	UserNotesCount     int64                 `json:"user_notes_count"`
	MergeRequestsCount int64                 `json:"merge_requests_count" doc:"Always 0."`
	Upvotes            int64                 `json:"upvotes"`
	Downvotes          int64                 `json:"downvotes"`
	DueDate            endpoint.Date         `json:"due_date"`
	Confidential       bool                  `json:"confidential"`
	DiscussionLocked   bool                  `json:"discussion_locked"`
	IssueType          string                `json:"issue_type" doc:"issue, incident, test_case or task."`
	WebURL             string                `json:"web_url"`
	TimeStats          item.TimeStats        `json:"time_stats"`
	Tasks              item.Tasks            `json:"task_completion_status"`
	HasTasks           bool                  `json:"has_tasks"`
	TaskStatus         string                `json:"task_status,omitempty"`
	Weight             *int64                `json:"weight"`
	EpicIID            *int64                `json:"epic_iid"`
	Epic               *Epic                 `json:"epic" doc:"Null if the caller does not see it."`
	Links              Links                 `json:"_links"`
	References         item.References       `json:"references"`
	Severity           string                `json:"severity" doc:"Always UNKNOWN."`
	MovedToID          *int64                `json:"moved_to_id" doc:"Always null."`
}

// Detailed is an issue with what only the answers about a single one show.
type Detailed struct {
	Issue
	Subscribed bool `json:"subscribed"`
}

// Epic is the epic of an issue.
type Epic struct {
	ID      int64  `json:"id"`
	IID     int64  `json:"iid"`
	Title   string `json:"title"`
	URL     string `json:"url"`
	GroupID int64  `json:"group_id"`
}

// Links are the REST addresses of an issue, its notes and its other related resources.
type Links struct {
	Self       string  `json:"self"`
	Notes      string  `json:"notes"`
	AwardEmoji string  `json:"award_emoji"`
	Project    string  `json:"project"`
	Duplicate  *string `json:"closed_as_duplicate_of"`
}

// showOne shows an issue of a project.
func (f *Family) showOne(ctx context.Context, s auth.Subject, in catalog.Scope, i issue.Issue) (Detailed, error) {
	shown, err := f.show(ctx, s, map[types.UID]catalog.Scope{in.Project.UID: in}, []issue.Issue{i}, false)
	if err != nil {
		return Detailed{}, err
	}
	d := Detailed{Issue: shown[0]}
	d.Subscribed, err = item.Subscribed(ctx, &f.Kit, s, f.Activity.Issues, i.Item(), people(i))
	return d, err
}

// shower holds the related objects of the issues that it shows.
type shower struct {
	*Family
	users      map[types.UID]*entity.UserSummary
	labels     item.LabelsInForce
	milestones map[int64]milestone.Milestone
	epics      map[int64]epic.Epic
	notes      map[int64]note.Count
	reactions  map[int64]reaction.Count
	// details says that labels are shown as objects.
	details bool
}

// show shows issues of the given projects. It looks up the related objects of all issues at once.
func (f *Family) show(ctx context.Context, s auth.Subject, in map[types.UID]catalog.Scope, issues []issue.Issue, details bool) ([]Issue, error) {
	v := shower{Family: f, details: details}
	var users []database.User
	var ids []int64
	milestones, epics := map[int64]bool{}, map[int64]bool{}
	labeled := map[types.UID]catalog.Scope{}
	for _, i := range issues {
		if len(i.Labels) > 0 {
			labeled[i.In.UID] = in[i.In.UID]
		}
		users, ids = append(append(users, i.Author, i.Closer), i.Assignees...), append(ids, i.ID)
		milestones[i.MilestoneID], epics[i.EpicID] = true, true
	}
	var err error
	if v.labels, err = item.InForce(ctx, f.Catalog, labeled); err != nil {
		return nil, err
	}
	if v.users, err = item.Users(ctx, f.Catalog, f.WebURL, users...); err != nil {
		return nil, err
	}
	if v.milestones, err = f.Activity.Milestones.WithIDs(ctx, slices.Collect(maps.Keys(milestones))...); err != nil {
		return nil, err
	}
	if v.epics, err = f.seenEpics(ctx, s, slices.Collect(maps.Keys(epics))); err != nil {
		return nil, err
	}
	if v.notes, err = f.Activity.Notes.Counts(ctx, issue.Kind, ids...); err != nil {
		return nil, err
	}
	if v.reactions, err = f.Activity.Reactions.Counts(ctx, issue.Kind, ids...); err != nil {
		return nil, err
	}
	shown := make([]Issue, len(issues))
	for n, i := range issues {
		shown[n] = v.issue(in[i.In.UID], s.Scope, i)
	}
	return shown, nil
}

// issue shows an issue of a project. from is the project or group of the request.
func (v *shower) issue(in, from catalog.Scope, i issue.Issue) Issue {
	short := fmt.Sprintf("#%d", i.IID)
	self := fmt.Sprintf("%s/api/v4/projects/%d", v.WebURL, in.RESTID())
	own := fmt.Sprintf("%s/issues/%d", self, i.IID)
	shown := Issue{
		ID: i.ID, IID: i.IID, ProjectID: in.RESTID(), Title: i.Title, State: i.State, CreatedAt: endpoint.Time(i.Created), UpdatedAt: endpoint.Time(i.Updated),
		ClosedAt: endpoint.Time(i.ClosedAt), ClosedBy: v.users[i.Closer.UID], Labels: v.labels.Show(i.In.UID, i.Labels, v.details), Assignees: item.Known(v.users, i.Assignees), Author: v.users[i.Author.UID],
		Type: strings.ToUpper(i.Type), IssueType: i.Type, UserNotesCount: v.notes[i.ID].Notes, Upvotes: v.reactions[i.ID].Up, Downvotes: v.reactions[i.ID].Down,
		DueDate: entity.Day(i.Due), Confidential: i.Confidential, DiscussionLocked: i.DiscussionLocked, WebURL: fmt.Sprintf("%s/%s/-/issues/%d", v.WebURL, in.Path(), i.IID),
		Tasks: item.CountTasks(i.Description), Weight: i.Weight, Severity: "UNKNOWN", References: item.Refer(short, in, from), TimeStats: item.Times(i.Estimate, i.Spent),
		Milestone: item.ShowMilestone(v.WebURL, in, v.milestones[i.MilestoneID], v.Clock.Now()),
		Links:     Links{Self: own, Notes: own + "/notes", AwardEmoji: own + "/award_emoji", Project: self},
	}
	if i.Description != "" {
		shown.Description = &i.Description
	}
	if shown.HasTasks = shown.Tasks.Count > 0; shown.HasTasks {
		shown.TaskStatus = fmt.Sprintf("%d of %d checklist items completed", shown.Tasks.Completed, shown.Tasks.Count)
	}
	if len(shown.Assignees) > 0 {
		shown.Assignee = shown.Assignees[0]
	}
	if e, known := v.epics[i.EpicID]; known && item.GroupPath(in, e.In) != "" {
		shown.EpicIID = &e.IID
		shown.Epic = &Epic{ID: e.ID, IID: e.IID, Title: e.Title, GroupID: e.In.ID, URL: fmt.Sprintf("/groups/%s/-/epics/%d", item.GroupPath(in, e.In), e.IID)}
	}
	return shown
}
