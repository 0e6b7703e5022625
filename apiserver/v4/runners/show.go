package runners

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// Runner is a runner in lists.
type Runner struct {
	ID          int64       `json:"id"`
	Description string      `json:"description"`
	Address     *string     `json:"ip_address" doc:"Null until the runner has made a request."`
	Active      bool        `json:"active" doc:"Deprecated: the opposite of paused."`
	Paused      bool        `json:"paused"`
	Shared      bool        `json:"is_shared"`
	Type        runner.Type `json:"runner_type" example:"project_type"`
	Name        *string     `json:"name" doc:"Name of the program; null until the runner has made a request."`
	Online      *bool       `json:"online" doc:"Null until the runner has made a request."`
	Status      string      `json:"status" example:"online"`
}

// Detailed is a runner with everything that is known of it.
type Detailed struct {
	Runner
	Tags            []string      `json:"tag_list"`
	RunUntagged     bool          `json:"run_untagged"`
	Locked          bool          `json:"locked"`
	MaximumTimeout  *int64        `json:"maximum_timeout" doc:"Seconds; null for no limit."`
	AccessLevel     string        `json:"access_level" example:"not_protected"`
	Version         *string       `json:"version"`
	Revision        *string       `json:"revision"`
	Platform        *string       `json:"platform"`
	Architecture    *string       `json:"architecture"`
	MaintenanceNote *string       `json:"maintenance_note"`
	ContactedAt     endpoint.Time `json:"contacted_at"`
	CreatedAt       endpoint.Time `json:"created_at"`
	Projects        []Place       `json:"projects" doc:"The projects of a project_type runner."`
	Groups          []Place       `json:"groups" doc:"The group of a group_type runner."`
}

// Place is a project or group of a runner.
type Place struct {
	ID                int64  `json:"id"`
	Name              string `json:"name"`
	Path              string `json:"path,omitempty"`
	PathWithNamespace string `json:"path_with_namespace,omitempty"`
	WebURL            string `json:"web_url"`
}

func (f *Family) show(r runner.Runner) Runner {
	shown := Runner{
		ID: r.ID, Description: r.Description, Address: given(r.Address), Active: !r.Paused, Paused: r.Paused, Shared: r.Type == runner.OfInstance,
		Type: r.Type, Name: given(r.Name), Status: f.status(r),
	}
	if !r.Contacted.IsZero() {
		is := shown.Status == "online"
		shown.Online = &is
	}
	return shown
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (f *Family) detail(ctx context.Context, r runner.Runner, places []database.Subject) (Detailed, error) {
	d := Detailed{
		Runner: f.show(r), Tags: append([]string{}, r.Tags...), RunUntagged: r.RunUntagged, Locked: r.Locked, AccessLevel: "not_protected",
		Version: given(r.Version), Revision: given(r.Revision), Platform: given(r.Platform), Architecture: given(r.Architecture),
		MaintenanceNote: given(r.MaintenanceNote), ContactedAt: endpoint.Time(r.Contacted), CreatedAt: endpoint.Time(r.Created),
		Projects: []Place{}, Groups: []Place{},
	}
	if r.Protected {
		d.AccessLevel = refProtected
	}
	if r.MaximumTimeout > 0 {
		seconds := int64(r.MaximumTimeout.Seconds())
		d.MaximumTimeout = &seconds
	}
	for _, in := range places {
		switch s, err := f.scope(ctx, in); {
		case errors.Is(err, catalog.ErrNotFound), err == nil && s.Target().GetUID() != in.UID:
		case err != nil:
			return Detailed{}, err
		case s.Project != nil:
			d.Projects = append(d.Projects, Place{s.RESTID(), s.Project.Spec.Name, s.Project.Spec.Path, s.Path(), f.WebURL + "/" + s.Path()})
		default:
			d.Groups = append(d.Groups, Place{ID: s.RESTID(), Name: s.Groups[0].Spec.Name, WebURL: f.WebURL + "/groups/" + s.Path()})
		}
	}
	return d, nil
}

// scope returns the project or group of a row.
func (f *Family) scope(ctx context.Context, in database.Subject) (catalog.Scope, error) {
	if in.Kind == database.KindGroup {
		return f.Guard.Group(ctx, fmt.Sprint(in.ID))
	}
	return f.Guard.Project(ctx, fmt.Sprint(in.ID))
}
