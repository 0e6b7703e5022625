package epics

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/epic"
)

// Epic is an epic of a group.
type Epic struct {
	ID                      int64               `json:"id"`
	IID                     int64               `json:"iid"`
	GroupID                 int64               `json:"group_id"`
	ParentID                *int64              `json:"parent_id" doc:"Always null: epics have no epics above."`
	Title                   string              `json:"title"`
	Description             string              `json:"description"`
	State                   string              `json:"state" doc:"opened or closed."`
	Confidential            bool                `json:"confidential"`
	WebURL                  string              `json:"web_url"`
	URL                     string              `json:"url" doc:"The path of web_url."`
	References              References          `json:"references"`
	Author                  *entity.UserSummary `json:"author" doc:"null if the user is gone."`
	StartDate               endpoint.Date       `json:"start_date"`
	StartDateIsFixed        bool                `json:"start_date_is_fixed"`
	StartDateFixed          endpoint.Date       `json:"start_date_fixed"`
	StartDateFromMilestones endpoint.Date       `json:"start_date_from_milestones" doc:"Always null."`
	DueDate                 endpoint.Date       `json:"due_date"`
	DueDateIsFixed          bool                `json:"due_date_is_fixed"`
	DueDateFixed            endpoint.Date       `json:"due_date_fixed"`
	DueDateFromMilestones   endpoint.Date       `json:"due_date_from_milestones" doc:"Always null."`
	CreatedAt               endpoint.Time       `json:"created_at"`
	UpdatedAt               endpoint.Time       `json:"updated_at"`
	ClosedAt                endpoint.Time       `json:"closed_at"`
	Labels                  any                 `json:"labels" doc:"Titles of the labels, or objects if the request asks for details."`
	Upvotes                 int64               `json:"upvotes"`
	Downvotes               int64               `json:"downvotes"`
	UserNotesCount          int64               `json:"user_notes_count"`
}

// References are the texts that stand for an epic in Markdown.
type References struct {
	Short    string `json:"short"`
	Relative string `json:"relative" doc:"From the group of the request."`
	Full     string `json:"full"`
}

// show shows an epic of a group.
func (f *Family) show(ctx context.Context, in catalog.Scope, e epic.Epic) (Epic, error) {
	all, err := f.showAll(ctx, in, places{in.Groups[0].UID: in}, []epic.Epic{e}, false)
	if err != nil {
		return Epic{}, err
	}
	return all[0], nil
}

// showAll shows epics of several groups, for a request about one. If details is true, labels are shown as objects.
func (f *Family) showAll(ctx context.Context, from catalog.Scope, at places, rows []epic.Epic, details bool) ([]Epic, error) {
	ids, authors, labeled := make([]int64, len(rows)), make([]database.User, len(rows)), places{}
	for i, e := range rows {
		ids[i], authors[i] = e.ID, e.Author
		if len(e.Labels) > 0 {
			labeled[e.In.UID] = at[e.In.UID]
		}
	}
	users, err := item.Users(ctx, f.Catalog, f.WebURL, authors...)
	if err != nil {
		return nil, err
	}
	votes, err := f.Activity.Reactions.Counts(ctx, epic.Kind, ids...)
	if err != nil {
		return nil, err
	}
	notes, err := f.Activity.Notes.Counts(ctx, epic.Kind, ids...)
	if err != nil {
		return nil, err
	}
	labels, err := item.InForce(ctx, f.Catalog, labeled)
	if err != nil {
		return nil, err
	}
	all := make([]Epic, len(rows))
	for i, e := range rows {
		shown := f.showRow(e, at[e.In.UID].Path(), e.In.UID == from.Groups[0].UID)
		shown.Author, shown.UserNotesCount = users[e.Author.UID], notes[e.ID].Notes
		shown.Upvotes, shown.Downvotes = votes[e.ID].Up, votes[e.ID].Down
		shown.Labels = labels.Show(e.In.UID, e.Labels, details)
		all[i] = shown
	}
	return all, nil
}

// showRow shows the fields of an epic that are stored with it. path is the path of its group, and own says whether the request is about this group.
func (f *Family) showRow(e epic.Epic, path string, own bool) Epic {
	short := fmt.Sprintf("&%d", e.IID)
	shown := Epic{
		ID: e.ID, IID: e.IID, GroupID: e.In.ID, Title: e.Title, Description: e.Description, State: string(e.State), Confidential: e.Confidential,
		URL: fmt.Sprintf("/groups/%s/-/epics/%d", path, e.IID), References: References{Short: short, Relative: path + short, Full: path + short},
		StartDate: entity.Day(e.Start), StartDateIsFixed: e.Start != "", StartDateFixed: entity.Day(e.Start),
		DueDate: entity.Day(e.Due), DueDateIsFixed: e.Due != "", DueDateFixed: entity.Day(e.Due),
		CreatedAt: endpoint.Time(e.Created), UpdatedAt: endpoint.Time(e.Updated), ClosedAt: endpoint.Time(e.ClosedAt),
	}
	shown.WebURL = f.WebURL + shown.URL
	if own {
		shown.References.Relative = short
	}
	return shown
}
