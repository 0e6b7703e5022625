package item

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/label"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// Label is a label of an item, with its details.
type Label struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Color       string  `json:"color"`
	Description *string `json:"description"`
	TextColor   string  `json:"text_color"`
}

// TimeStats are the times that are estimated and spent, in seconds.
type TimeStats struct {
	TimeEstimate        int64   `json:"time_estimate"`
	TotalTimeSpent      int64   `json:"total_time_spent"`
	HumanTimeEstimate   *string `json:"human_time_estimate"`
	HumanTotalTimeSpent *string `json:"human_total_time_spent"`
}

// References are the forms in which texts refer to an item.
type References struct {
	Short    string `json:"short"`
	Relative string `json:"relative" doc:"From the project or group of the request."`
	Full     string `json:"full"`
}

// Refer returns the references to an item of a project that is short for it. from is the project or group of the request.
func Refer(short string, in, from catalog.Scope) References {
	path := in.Path()
	return References{Short: short, Relative: relative(path, from) + short, Full: path + short}
}

// LabelsInForce are the labels in force in projects, by the UIDs of the project and the label.
type LabelsInForce map[types.UID]map[types.UID]*v1alpha1.Label

// InForce returns the labels in force in projects, which are given by their UIDs.
func InForce(ctx context.Context, c *catalog.Catalog, in map[types.UID]catalog.Scope) (LabelsInForce, error) {
	all := LabelsInForce{}
	for uid, project := range in {
		declared, err := label.All(ctx, c, project)
		if err != nil {
			return nil, err
		}
		all[uid] = map[types.UID]*v1alpha1.Label{}
		for _, l := range declared {
			all[uid][l.UID] = l.Label
		}
	}
	return all, nil
}

// Show returns the titles of labels of an item in a project, or the labels as objects, sorted by title. Labels that are not in force are left out.
func (l LabelsInForce) Show(project types.UID, labels []database.Label, details bool) any {
	if !details {
		return l.Titles(project, labels)
	}
	all := []Label{}
	for _, d := range l.of(project, labels) {
		all = append(all, showLabel(d))
	}
	return all
}

// Titles returns the titles of labels of an item in a project, sorted. Labels that are not in force are left out.
func (l LabelsInForce) Titles(project types.UID, labels []database.Label) []string {
	all := []string{}
	for _, d := range l.of(project, labels) {
		all = append(all, d.Spec.Title)
	}
	return all
}

// of returns the labels in force among those of an item in a project, sorted by title.
func (l LabelsInForce) of(project types.UID, labels []database.Label) (all []*v1alpha1.Label) {
	for _, row := range labels {
		if d := l[project][row.UID]; d != nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.Label) int { return strings.Compare(a.Spec.Title, b.Spec.Title) })
	return all
}

func showLabel(d *v1alpha1.Label) Label {
	shown := Label{ID: d.RESTID(), Name: d.Spec.Title, Color: d.Spec.Color}
	if hex, known := label.Hex(d.Spec.Color); known {
		shown.Color = hex
	}
	shown.TextColor = label.TextColor(shown.Color)
	if d.Spec.Description != "" {
		shown.Description = &d.Spec.Description
	}
	return shown
}

// HasMilestone reports whether items of a project can have a milestone: one of the project or of a group above.
func HasMilestone(in catalog.Scope, m milestone.Milestone) bool {
	return m.In.UID == in.Project.UID || GroupPath(in, m.In) != ""
}

// GroupPath returns the full path of a group above a project, or an empty text if it is not above it.
func GroupPath(in catalog.Scope, g database.Subject) string {
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
