package labels

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/markdown"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

// Label is "Label" of the core interface document, as a project shows it.
type Label struct {
	GroupLabel
	Priority       *int32 `json:"priority" doc:"Priority in the project, 0 the highest; null without one."`
	IsProjectLabel bool   `json:"is_project_label" doc:"Whether the label is the project's own."`
}

// GroupLabel is a label as a group shows it.
type GroupLabel struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Description     *string `json:"description"`
	DescriptionHTML string  `json:"description_html"`
	TextColor       string  `json:"text_color,omitempty" doc:"Color of a text that can be read on the label; not shown of a label that is promoted."`
	Color           string  `json:"color" doc:"Hexadecimal, as #RGB or #RRGGBB."`
	*Counts
	Subscribed bool `json:"subscribed" doc:"Whether the caller is subscribed."`
}

// entry is a label in the view of a project or group.
type entry struct {
	label.Inherited
	// near is true if the label belongs to the project or group itself, or to the direct parent group of the project.
	near bool
	// text is the text that a search covers.
	text string
	// shown has the fields that all callers see, except for the rendered description.
	shown Label
}

func newEntry(in catalog.Scope, l label.Inherited) entry {
	e := entry{Inherited: l, text: strings.ToLower(l.Spec.Title + "\x00" + l.Spec.Description)}
	e.near = e.Above == 0 || e.Above == 1 && in.Project != nil
	hex, isColor := label.Hex(l.Spec.Color)
	if !isColor {
		hex = l.Spec.Color
	}
	e.shown = Label{
		GroupLabel: GroupLabel{ID: l.RESTID(), Name: l.Spec.Title, Color: hex, TextColor: label.TextColor(hex)},
		Priority:   e.priority(in.Project), IsProjectLabel: e.own(),
	}
	if l.Spec.Description != "" {
		e.shown.Description = &l.Spec.Description
	}
	return e
}

// priority returns the priority of the label in the project: the label's own priority, or for a group's label the priority that the project
// declares. The project is nil in the view of a group.
func (e entry) priority(in *v1alpha1.Project) *int32 {
	if e.own() {
		return e.Spec.Priority
	}
	if in == nil {
		return nil
	}
	return priorityOf(in.Spec.LabelPriorities, e.Spec.Title)
}

// own reports whether the label belongs to a project.
func (e entry) own() bool { return e.Spec.ProjectRef != nil }

// view returns the labels of a project or group and of the groups above, by their titles. Labels with the same title begin with the nearest
// one.
func (f *Family) view(ctx context.Context, scope catalog.Scope) ([]entry, error) {
	return catalog.RecallFor(f.views, scope, f.Clock.Now(), func(c *catalog.Catalog, scope catalog.Scope) ([]entry, error) {
		all, err := entries(ctx, c, scope)
		return byTitle(all), err
	})
}

// entries returns the labels of a project or group and of the groups above, the nearest first.
func entries(ctx context.Context, c *catalog.Catalog, scope catalog.Scope) ([]entry, error) {
	found, err := label.All(ctx, c, scope)
	if err != nil {
		return nil, err
	}
	all := make([]entry, 0, len(found))
	for _, l := range found {
		all = append(all, newEntry(scope, l))
	}
	return all, nil
}

// byTitle sorts labels by their titles, in place and stably.
func byTitle(all []entry) []entry {
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Spec.Title), strings.ToLower(b.Spec.Title)), strings.Compare(a.Spec.Title, b.Spec.Title))
	})
	return all
}

// chosen returns the labels that match the request.
func chosen(all []entry, ancestors bool, search string) []entry {
	if ancestors && search == "" {
		return all
	}
	search = strings.ToLower(search)
	var some []entry
	for _, e := range all {
		if (ancestors || e.near) && strings.Contains(e.text, search) {
			some = append(some, e)
		}
	}
	return some
}

// find returns the label of a project or group by id or title.
func (f *Family) find(ctx context.Context, in catalog.Scope, key string) (entry, error) {
	all, err := f.view(ctx, in)
	if err != nil {
		return entry{}, err
	}
	return pick(all, key)
}

// findToChange is find for a label to update or delete. In a group, it finds only labels of the group itself.
func (f *Family) findToChange(ctx context.Context, in catalog.Scope, key string) (entry, error) {
	all, err := f.view(ctx, in)
	if err != nil {
		return entry{}, err
	}
	if in.Project == nil {
		all = chosen(all, false, "")
	}
	return pick(all, key)
}

// pick returns a label by id or title.
func pick(all []entry, key string) (entry, error) {
	id, err := strconv.ParseInt(key, 10, 64)
	i := -1
	if err == nil {
		i = slices.IndexFunc(all, func(e entry) bool { return e.RESTID() == id })
	}
	if i < 0 {
		i = slices.IndexFunc(all, func(e entry) bool { return e.Spec.Title == key })
	}
	if i < 0 {
		return entry{}, notFound()
	}
	return all[i], nil
}

// show shows one label.
func (f *Family) show(ctx context.Context, s auth.Subject, e entry) (Label, error) {
	v, err := f.viewer(ctx, s, []entry{e}, true)
	return v.label(e), err
}

// viewer has the data of some labels that depend on the caller.
type viewer struct {
	family     *Family
	subscribed sets.Set[types.UID]
	// counts is nil if the request does not ask for counts.
	counts map[types.UID]Counts
}

// viewer looks up the counts and subscriptions of all labels at once.
func (f *Family) viewer(ctx context.Context, s auth.Subject, of []entry, counts bool) (viewer, error) {
	v := viewer{family: f}
	var err error
	if counts {
		if v.counts, err = f.count(ctx, s, of); err != nil {
			return v, err
		}
	}
	if u := s.Caller.User; u != nil {
		v.subscribed, err = f.Activity.Subscriptions.Subscribed(ctx, database.User{ID: u.RESTID(), UID: u.UID}, subscription.KindLabel)
	}
	return v, err
}

func (v viewer) label(e entry) Label {
	shown := e.shown
	shown.DescriptionHTML = v.family.html(e.Spec.Description)
	shown.Subscribed = v.subscribed.Has(e.UID)
	if v.counts != nil {
		counts := v.counts[e.UID]
		shown.Counts = &counts
	}
	return shown
}

func (v viewer) groupLabel(e entry) GroupLabel { return v.label(e).GroupLabel }

// html returns the rendered description from the cache, or renders it.
func (f *Family) html(description string) string {
	if description == "" {
		return ""
	}
	if known, ok := f.rendered.Get(description); ok {
		return known.(string)
	}
	rendered := markdown.Line(description)
	f.rendered.Add(description, rendered)
	return rendered
}
