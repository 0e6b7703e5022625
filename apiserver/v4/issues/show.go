package issues

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/milestone"
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
	TimeStats          TimeStats             `json:"time_stats"`
	Tasks              Tasks                 `json:"task_completion_status"`
	HasTasks           bool                  `json:"has_tasks"`
	TaskStatus         string                `json:"task_status,omitempty"`
	Weight             *int64                `json:"weight"`
	EpicIID            *int64                `json:"epic_iid"`
	Epic               *Epic                 `json:"epic" doc:"Null if the caller does not see it."`
	Links              Links                 `json:"_links"`
	References         References            `json:"references"`
	Severity           string                `json:"severity" doc:"Always UNKNOWN."`
	MovedToID          *int64                `json:"moved_to_id" doc:"Always null."`
}

// Label is a label of an issue, with its details.
type Label struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Color       string  `json:"color"`
	Description *string `json:"description"`
	TextColor   string  `json:"text_color"`
}

// Epic is the epic of an issue.
type Epic struct {
	ID      int64  `json:"id"`
	IID     int64  `json:"iid"`
	Title   string `json:"title"`
	URL     string `json:"url"`
	GroupID int64  `json:"group_id"`
}

// TimeStats are the times that are estimated and spent. Nothing records them.
type TimeStats struct {
	TimeEstimate        int64   `json:"time_estimate"`
	TotalTimeSpent      int64   `json:"total_time_spent"`
	HumanTimeEstimate   *string `json:"human_time_estimate"`
	HumanTotalTimeSpent *string `json:"human_total_time_spent"`
}

// Links are the REST addresses of an issue, its notes and its other related resources.
type Links struct {
	Self       string  `json:"self"`
	Notes      string  `json:"notes"`
	AwardEmoji string  `json:"award_emoji"`
	Project    string  `json:"project"`
	Duplicate  *string `json:"closed_as_duplicate_of"`
}

// References are the forms in which texts refer to an issue.
type References struct {
	Short    string `json:"short"`
	Relative string `json:"relative" doc:"From the project or group of the request."`
	Full     string `json:"full"`
}

// showOne shows an issue of a project.
func (f *Family) showOne(ctx context.Context, s auth.Subject, in catalog.Scope, i issue.Issue) (Issue, error) {
	shown, err := f.show(ctx, s, map[types.UID]catalog.Scope{in.Project.UID: in}, []issue.Issue{i}, false)
	if err != nil {
		return Issue{}, err
	}
	return shown[0], nil
}

// shower holds the related objects of the issues that it shows.
type shower struct {
	*Family
	users map[types.UID]*entity.UserSummary
	// labels are the labels in force in the projects, by the UIDs of the project and the label.
	labels     map[types.UID]map[types.UID]*v1alpha1.Label
	milestones map[int64]milestone.Milestone
	epics      map[int64]epic.Epic
	notes      map[int64]int64
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
	for _, i := range issues {
		users, ids = append(append(users, i.Author, i.Closer), i.Assignees...), append(ids, i.ID)
		milestones[i.MilestoneID], epics[i.EpicID] = true, true
	}
	var err error
	if v.labels, err = f.inForce(ctx, in, issues); err != nil {
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

// inForce returns the labels in force in the projects of issues, by the UIDs of the project and the label. It leaves out projects without labeled issues.
func (f *Family) inForce(ctx context.Context, in map[types.UID]catalog.Scope, issues []issue.Issue) (map[types.UID]map[types.UID]*v1alpha1.Label, error) {
	all := map[types.UID]map[types.UID]*v1alpha1.Label{}
	for _, i := range issues {
		if len(i.Labels) == 0 || all[i.In.UID] != nil {
			continue
		}
		declared, err := label.All(ctx, f.Catalog, in[i.In.UID])
		if err != nil {
			return nil, err
		}
		all[i.In.UID] = map[types.UID]*v1alpha1.Label{}
		for _, l := range declared {
			all[i.In.UID][l.UID] = l.Label
		}
	}
	return all, nil
}

// issue shows an issue of a project. from is the project or group of the request.
func (v *shower) issue(in, from catalog.Scope, i issue.Issue) Issue {
	path := in.Path()
	web, short := v.WebURL+"/"+path, fmt.Sprintf("#%d", i.IID)
	self := fmt.Sprintf("%s/api/v4/projects/%d", v.WebURL, in.RESTID())
	own := fmt.Sprintf("%s/issues/%d", self, i.IID)
	shown := Issue{
		ID: i.ID, IID: i.IID, ProjectID: in.RESTID(), Title: i.Title, State: i.State, CreatedAt: endpoint.Time(i.Created), UpdatedAt: endpoint.Time(i.Updated),
		ClosedAt: endpoint.Time(i.ClosedAt), ClosedBy: v.users[i.Closer.UID], Labels: v.shownLabels(i), Assignees: []*entity.UserSummary{}, Author: v.users[i.Author.UID],
		Type: strings.ToUpper(i.Type), IssueType: i.Type, UserNotesCount: v.notes[i.ID], Upvotes: v.reactions[i.ID].Up, Downvotes: v.reactions[i.ID].Down,
		DueDate: entity.Day(i.Due), Confidential: i.Confidential, DiscussionLocked: i.DiscussionLocked, WebURL: fmt.Sprintf("%s/-/issues/%d", web, i.IID),
		Tasks: tasksOf(i.Description), Weight: i.Weight, Severity: "UNKNOWN", References: References{Short: short, Relative: relative(path, from) + short, Full: path + short},
		Links: Links{Self: own, Notes: own + "/notes", AwardEmoji: own + "/award_emoji", Project: self},
	}
	if i.Description != "" {
		shown.Description = &i.Description
	}
	if shown.HasTasks = shown.Tasks.Count > 0; shown.HasTasks {
		shown.TaskStatus = fmt.Sprintf("%d of %d checklist items completed", shown.Tasks.Completed, shown.Tasks.Count)
	}
	for _, u := range i.Assignees {
		if known := v.users[u.UID]; known != nil {
			shown.Assignees = append(shown.Assignees, known)
		}
	}
	if len(shown.Assignees) > 0 {
		shown.Assignee = shown.Assignees[0]
	}
	// A project keeps the milestones of groups that it has left: its callers may not see these groups.
	if m, known := v.milestones[i.MilestoneID]; known && hasMilestone(in, m) {
		at := web
		if group := groupPath(in, m.In); group != "" {
			at = v.WebURL + "/groups/" + group
		}
		of := entity.ShowMilestone(m, at, v.Clock.Now())
		shown.Milestone = &of
	}
	if e, known := v.epics[i.EpicID]; known && groupPath(in, e.In) != "" {
		shown.EpicIID = &e.IID
		shown.Epic = &Epic{ID: e.ID, IID: e.IID, Title: e.Title, GroupID: e.In.ID, URL: fmt.Sprintf("/groups/%s/-/epics/%d", groupPath(in, e.In), e.IID)}
	}
	return shown
}

// shownLabels returns the titles of the labels of an issue, or the labels, sorted by title. Labels that are not in force are left out.
func (v *shower) shownLabels(i issue.Issue) any {
	titles, all := []string{}, []Label{}
	for _, l := range i.Labels {
		d := v.labels[i.In.UID][l.UID]
		if d == nil {
			continue
		}
		shown := Label{ID: d.RESTID(), Name: d.Spec.Title, Color: d.Spec.Color}
		if hex, known := label.Hex(d.Spec.Color); known {
			shown.Color = hex
		}
		shown.TextColor = label.TextColor(shown.Color)
		if d.Spec.Description != "" {
			shown.Description = &d.Spec.Description
		}
		titles, all = append(titles, d.Spec.Title), append(all, shown)
	}
	if v.details {
		slices.SortFunc(all, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
		return all
	}
	slices.Sort(titles)
	return titles
}

// hasMilestone reports whether issues of a project can have a milestone: one of the project or of a group above.
func hasMilestone(in catalog.Scope, m milestone.Milestone) bool {
	return m.In.UID == in.Project.UID || groupPath(in, m.In) != ""
}

// groupPath returns the full path of a group above a project, or an empty text if it is not above it.
func groupPath(in catalog.Scope, g database.Subject) string {
	at := slices.IndexFunc(in.Groups, func(above *v1alpha1.Group) bool { return above.UID == g.UID })
	if at < 0 {
		return ""
	}
	return catalog.FullPath(in.Groups[at:])
}

// relative returns how texts in the place of a request name a project: not at all in itself, by its path below a group, and else by its full path.
func relative(path string, from catalog.Scope) string {
	switch {
	case from.Project != nil:
		return ""
	case len(from.Groups) == 0:
		return path
	default:
		return strings.TrimPrefix(path, from.Path()+"/")
	}
}
