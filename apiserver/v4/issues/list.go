package issues

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// filters select issues.
type filters struct {
	State            string                       `param:"state" values:"opened,closed,all" default:"all" doc:"Only issues in this state."`
	Labels           endpoint.Either[[]string]    `param:"labels" comma:"" words:"None,Any" doc:"Titles of labels, all of which the issues have; None or Any for issues without or with a label."`
	WithDetails      bool                         `param:"with_labels_details" doc:"Whether labels are shown as objects."`
	Milestone        endpoint.Either[string]      `param:"milestone" words:"None,Any" doc:"Title of the milestone; None or Any for issues without or with one."`
	AuthorID         endpoint.Optional[int64]     `param:"author_id" atMostOne:"author" doc:"Id of the author."`
	AuthorUsername   endpoint.Optional[string]    `param:"author_username" atMostOne:"author" doc:"Username of the author."`
	AssigneeID       endpoint.Either[int64]       `param:"assignee_id" words:"None,Any" atMostOne:"assignee" doc:"Id of an assignee; None or Any for issues without or with one."`
	AssigneeUsername endpoint.Either[[]string]    `param:"assignee_username" comma:"" words:"None,Any" atMostOne:"assignee" doc:"Usernames of users who are all assigned; None or Any for issues without or with an assignee."`
	MyReaction       endpoint.Either[string]      `param:"my_reaction_emoji" words:"None,Any" doc:"Emoji that the caller has given; None or Any for issues without or with one."`
	IIDs             []int64                      `param:"iids" comma:"" doc:"Internal ids."`
	Search           string                       `param:"search" doc:"Part of the title or description, in any case."`
	In               []string                     `param:"in" comma:"" values:"title,description" doc:"Where the search looks, by default in both."`
	CreatedAfter     endpoint.Optional[time.Time] `param:"created_after" doc:"Only issues that were created at this time or later."`
	CreatedBefore    endpoint.Optional[time.Time] `param:"created_before" doc:"Only issues that were created at this time or earlier."`
	UpdatedAfter     endpoint.Optional[time.Time] `param:"updated_after" doc:"Only issues that last changed at this time or later."`
	UpdatedBefore    endpoint.Optional[time.Time] `param:"updated_before" doc:"Only issues that last changed at this time or earlier."`
	Confidential     endpoint.Optional[bool]      `param:"confidential" doc:"Only confidential issues, or only others."`
	Type             string                       `param:"issue_type" values:"issue,incident,test_case,task" doc:"Only issues of this type."`
	DueDate          string                       `param:"due_date" values:"0,any,today,tomorrow,overdue,week,month,next_month_and_previous_two_weeks" doc:"When the issues are due; 0 and any for issues without and with a due date."`
	Weight           endpoint.Either[int64]       `param:"weight" words:"None,Any" doc:"Weight; None or Any for issues without or with one."`
	EpicID           endpoint.Either[int64]       `param:"epic_id" words:"None,Any" doc:"Id of the epic; None or Any for issues without or with one."`
	Not              negative                     `param:"not" doc:"Filters that must not apply to the issues."`
	OrderBy          string                       `param:"order_by" values:"created_at,updated_at,title,due_date,weight" default:"created_at" doc:"Field that orders the list."`
	Sort             string                       `param:"sort" values:"asc,desc" default:"desc" doc:"Whether the order goes up or down."`
}

// negative are filters that must not apply.
type negative struct {
	Labels           []string                  `param:"labels" comma:"" doc:"Titles of labels that the issues do not have."`
	Milestone        endpoint.Optional[string] `param:"milestone" doc:"Title of a milestone."`
	AuthorID         []int64                   `param:"author_id" comma:"" doc:"Ids of users."`
	AuthorUsername   []string                  `param:"author_username" comma:"" doc:"Usernames."`
	AssigneeID       []int64                   `param:"assignee_id" comma:"" doc:"Ids of users who are not assigned."`
	AssigneeUsername []string                  `param:"assignee_username" comma:"" doc:"Usernames of users who are not assigned."`
	MyReaction       []string                  `param:"my_reaction_emoji" comma:"" doc:"Emoji that the caller has not given."`
	IIDs             []int64                   `param:"iids" comma:"" doc:"Internal ids."`
	Search           string                    `param:"search" doc:"Text that the title and the description do not contain, in any case."`
	In               []string                  `param:"in" comma:"" values:"title,description" doc:"Where that search looks, by default in both."`
	Type             string                    `param:"issue_type" values:"issue,incident,test_case,task" doc:"A type."`
	Weight           endpoint.Optional[int64]  `param:"weight" doc:"A weight."`
	EpicID           endpoint.Optional[int64]  `param:"epic_id" doc:"Id of an epic."`
}

type listRequest struct {
	endpoint.Paging
	filters
	Scope string `param:"scope" values:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,all" default:"created_by_me" doc:"Whether issues that the caller has written or is assigned to, or all that the caller sees."`
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *listRequest) (endpoint.List[Issue], error) {
	if s.Caller.Anonymous() && r.Scope != "all" {
		return endpoint.List[Issue]{}, endpoint.Unauthorized("")
	}
	p, err := f.among(ctx, s.Subject, visible.In{})
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return f.page(ctx, s.Subject, p, r.Paging, r.filters, r.Scope)
}

type listInRequest struct {
	endpoint.Paging
	filters
	Scope string `param:"scope" values:"created_by_me,created-by-me,assigned_to_me,assigned-to-me,all" default:"all" doc:"Whether only issues that the caller has written or is assigned to."`
}

func (f *Family) listInGroup(ctx context.Context, s auth.Group, r *listInRequest) (endpoint.List[Issue], error) {
	p, err := f.among(ctx, s.Subject, visible.In{Group: s.Scope.Groups[0], Below: true})
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return f.page(ctx, s.Subject, p, r.Paging, r.filters, r.Scope)
}

func (f *Family) listInProject(ctx context.Context, s auth.Project, r *listInRequest) (endpoint.List[Issue], error) {
	return f.page(ctx, s.Subject, f.here(s.Subject), r.Paging, r.filters, r.Scope)
}

// page returns a page of the issues in some places.
func (f *Family) page(ctx context.Context, s auth.Subject, in places, p endpoint.Paging, r filters, scope string) (endpoint.List[Issue], error) {
	q := issue.Query{Seen: in.Seen.Seen, Order: issue.Order(r.OrderBy), Ascending: r.Sort == "asc"}
	var err error
	if q.Page, err = f.items.Page(ctx, issue.Kind, in.Projects, p, r.alone()); err != nil {
		return endpoint.List[Issue]{}, err
	}
	if q.Conditions, err = f.conditions(ctx, s, in, r); err != nil {
		return endpoint.List[Issue]{}, err
	}
	q.Conditions = append(q.Conditions, item.Among(scope, issue.By(in.Viewer), issue.AssignedTo(in.Viewer))...)
	if err := item.CheckFilters(q.Conditions); err != nil {
		return endpoint.List[Issue]{}, err
	}
	rows, total, err := f.Activity.Issues.List(ctx, q)
	if err != nil {
		return endpoint.List[Issue]{}, err
	}
	return endpoint.Each(endpoint.Cut(rows, total, func(i issue.Issue) issue.Issue { return i }), func(rows []issue.Issue) ([]Issue, error) {
		return f.show(ctx, s, in.Scopes, rows, r.WithDetails)
	})
}

// alone reports whether the filters are about issues alone, and not about what can change without them: the titles of milestones, and which epics are
// confidential.
func (r filters) alone() bool { return !r.Milestone.Set && r.EpicID.Word == "" && !r.Not.Milestone.Set }

// conditions translates the filters of a request.
func (f *Family) conditions(ctx context.Context, s auth.Subject, in places, r filters) (all []issue.Condition, err error) {
	add := func(more ...issue.Condition) { all = append(all, more...) }
	if r.State != "all" {
		add(issue.Is(issue.State(r.State)))
	}
	add(item.OrWord(item.Nonempty(r.Milestone), issue.Planned(), issue.PlannedFor)...)
	add(item.OrWord(r.Weight, issue.Weighed(), issue.Weighing)...)
	add(item.OrWord(item.Nonempty(r.MyReaction), issue.ReactedTo(in.Viewer, ""), func(name string) issue.Condition { return issue.ReactedTo(in.Viewer, name) })...)
	if len(r.IIDs) > 0 {
		add(issue.Numbered(r.IIDs...))
	}
	if r.Search != "" {
		add(issue.Containing(r.Search, item.Part(r.In)))
	}
	if r.Confidential.Set && !r.Confidential.Null {
		add(item.Is(issue.Confidential(), r.Confidential.Value))
	}
	if r.Type != "" {
		add(issue.OfType(r.Type))
	}
	add(f.times(r)...)
	people, err := f.people(ctx, r)
	if err != nil {
		return nil, err
	}
	add(people...)
	epic, err := f.inEpic(ctx, s, in, r.EpicID)
	if err != nil {
		return nil, err
	}
	add(epic...)
	switch {
	case r.Labels.Word != "":
		add(item.Is(issue.Labeled(), r.Labels.Word == item.AnyWord))
	default:
		labels, err := item.Labeled(ctx, in.label, r.Labels.Value, issue.LabeledWith)
		if err != nil {
			return nil, err
		}
		add(labels...)
	}
	negative, err := f.negative(ctx, s, in, r.Not)
	for _, c := range negative {
		add(database.Not(c))
	}
	return all, err
}

// people returns the conditions on the author and the assignees.
func (f *Family) people(ctx context.Context, r filters) ([]issue.Condition, error) {
	author, err := item.By(ctx, f.Catalog, r.AuthorID, r.AuthorUsername, issue.By)
	if err != nil {
		return nil, err
	}
	assignees, err := item.AssignedTo(ctx, f.Catalog, r.AssigneeID, r.AssigneeUsername, issue.Assigned(), issue.AssignedTo)
	return append(author, assignees...), err
}

// times returns the conditions on times and the due date.
func (f *Family) times(r filters) (all []issue.Condition) {
	all = slices.Concat(item.When(r.CreatedAfter, issue.Created.Since), item.When(r.CreatedBefore, issue.Created.Until),
		item.When(r.UpdatedAfter, issue.Updated.Since), item.When(r.UpdatedBefore, issue.Updated.Until))
	switch r.DueDate {
	case "":
		return all
	case "0":
		return append(all, database.Not(issue.HasDue()))
	case "any":
		return append(all, issue.HasDue())
	default:
		return append(all, issue.Due(days(r.DueDate, f.Clock.Now().UTC())))
	}
}

// days returns the first day of a span of time, and the day after its last one.
func days(span string, now time.Time) (from, to string) {
	day := func(months, days int) string { return now.AddDate(0, months, days).Format(time.DateOnly) }
	first := 1 - now.Day()
	monday := -(int(now.Weekday()) + 6) % 7
	switch span {
	case "today":
		return day(0, 0), day(0, 1)
	case "tomorrow":
		return day(0, 1), day(0, 2)
	case "overdue":
		return "", day(0, 0)
	case "week":
		return day(0, monday), day(0, monday+7)
	case "month":
		now = now.AddDate(0, 0, first)
		return day(0, 0), day(1, 0)
	default: // next_month_and_previous_two_weeks
		from = day(0, -14)
		now = now.AddDate(0, 0, first)
		return from, day(2, 0)
	}
}

// negative returns the conditions that must not hold.
func (f *Family) negative(ctx context.Context, s auth.Subject, in places, r negative) (all []issue.Condition, err error) {
	if all, err = item.Labeled(ctx, in.label, r.Labels, issue.LabeledWith); err != nil {
		return nil, err
	}
	add := func(c issue.Condition) { all = append(all, c) }
	if r.Milestone.Or("") != "" {
		add(issue.PlannedFor(r.Milestone.Value))
	}
	for _, name := range r.MyReaction {
		add(issue.ReactedTo(in.Viewer, name))
	}
	if r.Search != "" {
		add(issue.Containing(r.Search, item.Part(r.In)))
	}
	if r.Type != "" {
		add(issue.OfType(r.Type))
	}
	if r.Weight.Set && !r.Weight.Null {
		add(issue.Weighing(r.Weight.Value))
	}
	add(issue.Numbered(r.IIDs...))
	if r.EpicID.Set && !r.EpicID.Null {
		seen, err := f.seenEpics(ctx, s, []int64{r.EpicID.Value})
		if err != nil {
			return nil, err
		}
		add(issue.InEpics(slices.Collect(maps.Keys(seen))...))
	}
	for _, who := range []struct {
		ids   []int64
		names []string
		is    func(...types.UID) issue.Condition
	}{{r.AuthorID, r.AuthorUsername, issue.By}, {r.AssigneeID, r.AssigneeUsername, issue.AssignedTo}} {
		c, err := item.AnyOf(ctx, f.Catalog, who.ids, who.names, who.is)
		if err != nil {
			return nil, err
		}
		add(c)
	}
	return all, nil
}
