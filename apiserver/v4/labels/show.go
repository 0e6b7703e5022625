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
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/markdown"
	"github.com/forgeplane/forgeplane/internal/subscription"
)

// Label is "Label" of the core interface document.
type Label struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Description     *string `json:"description"`
	DescriptionHTML string  `json:"description_html"`
	TextColor       string  `json:"text_color" doc:"Color of a text that can be read on the label."`
	Color           string  `json:"color" doc:"Hexadecimal, as #RGB or #RRGGBB."`
	*Counts
	Subscribed     bool   `json:"subscribed" doc:"Whether the caller is subscribed."`
	Priority       *int32 `json:"priority" doc:"Priority in the project, 0 the highest; null without one."`
	IsProjectLabel bool   `json:"is_project_label" doc:"Whether the label is the project's own."`
}

// GroupLabel is a label that was promoted.
type GroupLabel struct {
	ID              int64   `json:"id"`
	Name            string  `json:"name"`
	Description     *string `json:"description"`
	DescriptionHTML string  `json:"description_html"`
	Color           string  `json:"color" doc:"Hexadecimal, as #RGB or #RRGGBB."`
	*Counts
	Subscribed bool `json:"subscribed" doc:"Whether the caller is subscribed."`
}

// entry is a label as it is seen from a project.
type entry struct {
	label.Inherited
	// text is what a search looks through.
	text string
	// shown is what every caller sees, except for the rendered description.
	shown Label
}

func newEntry(p *v1alpha1.Project, l label.Inherited) entry {
	e := entry{Inherited: l, text: strings.ToLower(l.Spec.Title + "\x00" + l.Spec.Description)}
	hex, isColor := label.Hex(l.Spec.Color)
	if !isColor {
		hex = l.Spec.Color
	}
	e.shown = Label{
		ID: l.RESTID(), Name: l.Spec.Title, Color: hex, TextColor: label.TextColor(hex), Priority: e.priority(p), IsProjectLabel: e.own(),
	}
	if l.Spec.Description != "" {
		e.shown.Description = &l.Spec.Description
	}
	return e
}

// priority returns the priority of the label in the project: its own, or the one that the project gives to a group's label.
func (e entry) priority(in *v1alpha1.Project) *int32 {
	if e.own() {
		return e.Spec.Priority
	}
	return priorityOf(in.Spec.LabelPriorities, e.Spec.Title)
}

// own reports whether the label is the project's own.
func (e entry) own() bool { return e.Spec.ProjectRef != nil }

// near reports whether the label belongs to the project itself or to its direct parent group.
func (e entry) near() bool { return e.Above <= 1 }

// view returns the labels of a project by their titles; of one title the nearest comes first.
func (f *Family) view(ctx context.Context, scope catalog.Scope) ([]entry, error) {
	return catalog.RecallFor(f.views, scope, func(c *catalog.Catalog, scope catalog.Scope) ([]entry, error) {
		found, err := label.All(ctx, c, scope)
		if err != nil {
			return nil, err
		}
		all := make([]entry, 0, len(found))
		for _, l := range found {
			all = append(all, newEntry(scope.Project, l))
		}
		slices.SortStableFunc(all, func(a, b entry) int {
			return cmp.Or(strings.Compare(strings.ToLower(a.Spec.Title), strings.ToLower(b.Spec.Title)), strings.Compare(a.Spec.Title, b.Spec.Title))
		})
		return all, nil
	})
}

// chosen returns the labels that a list must contain.
func chosen(all []entry, ancestors bool, search string) []entry {
	if ancestors && search == "" {
		return all
	}
	search = strings.ToLower(search)
	var some []entry
	for _, e := range all {
		if (ancestors || e.near()) && strings.Contains(e.text, search) {
			some = append(some, e)
		}
	}
	return some
}

// find returns the label of the project that has an id or, if there is none, a title.
func (f *Family) find(ctx context.Context, s auth.Project, key string) (entry, error) {
	all, err := f.view(ctx, s.Scope)
	if err != nil {
		return entry{}, err
	}
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

// page shows a page of labels.
func (f *Family) page(ctx context.Context, s auth.Project, p endpoint.Paging, all []entry, counts bool) (endpoint.List[Label], error) {
	v, err := f.viewer(ctx, s, endpoint.Rows(p, all), counts)
	if err != nil {
		return endpoint.List[Label]{}, err
	}
	return endpoint.Page(p, all, v.label), nil
}

// show shows one label.
func (f *Family) show(ctx context.Context, s auth.Project, e entry) (Label, error) {
	v, err := f.viewer(ctx, s, []entry{e}, true)
	return v.label(e), err
}

// viewer is what one caller is shown of some labels.
type viewer struct {
	family     *Family
	subscribed sets.Set[types.UID]
	// counts is nil where nothing is counted.
	counts map[int64]Counts
}

// viewer looks up for all of the labels at once what is not declared of them.
func (f *Family) viewer(ctx context.Context, s auth.Project, of []entry, counts bool) (viewer, error) {
	v := viewer{family: f}
	var err error
	if counts {
		ids := make([]int64, len(of))
		for i, e := range of {
			ids[i] = e.RESTID()
		}
		if v.counts, err = f.counter.Count(ctx, s.Scope.Project.RESTID(), ids); err != nil {
			return v, err
		}
		if v.counts == nil {
			v.counts = map[int64]Counts{}
		}
	}
	if u := s.Caller.User; u != nil {
		v.subscribed, err = f.subscriptions.Subscribed(ctx, database.User{ID: u.RESTID(), UID: u.UID}, subscription.KindLabel)
	}
	return v, err
}

func (v viewer) label(e entry) Label {
	shown := e.shown
	shown.DescriptionHTML = v.family.html(e.Spec.Description)
	shown.Subscribed = v.subscribed.Has(e.UID)
	if v.counts != nil {
		counts := v.counts[e.RESTID()]
		shown.Counts = &counts
	}
	return shown
}

func (v viewer) groupLabel(e entry) GroupLabel {
	l := v.label(e)
	return GroupLabel{
		ID: l.ID, Name: l.Name, Description: l.Description, DescriptionHTML: l.DescriptionHTML, Color: l.Color,
		Counts: l.Counts, Subscribed: l.Subscribed,
	}
}

// html renders a description, which takes longer than to look it up.
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
