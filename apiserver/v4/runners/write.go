package runners

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// settings are the fields of a runner that users can set.
type settings struct {
	Description     endpoint.Optional[string]   `param:"description" doc:"Description of the runner."`
	Paused          endpoint.Optional[bool]     `param:"paused" doc:"Whether the runner gets no jobs."`
	Active          endpoint.Optional[bool]     `param:"active" doc:"Deprecated: the opposite of paused."`
	Locked          endpoint.Optional[bool]     `param:"locked" doc:"Whether the runner of a project cannot be assigned to other projects."`
	RunUntagged     endpoint.Optional[bool]     `param:"run_untagged" doc:"Whether the runner also executes jobs without tags."`
	Tags            endpoint.Optional[[]string] `param:"tag_list" comma:"" doc:"Tags that jobs can demand."`
	AccessLevel     string                      `param:"access_level" values:"not_protected,ref_protected" doc:"Whether the runner executes only the jobs of protected branches."`
	MaximumTimeout  endpoint.Optional[int64]    `param:"maximum_timeout" minimum:"600" doc:"Limit of the time of a job in seconds."`
	MaintenanceNote endpoint.Optional[string]   `param:"maintenance_note" doc:"Note for administrators."`
}

const (
	// maxText and maxNote are the maximum numbers of characters of descriptions and notes.
	maxText, maxNote = 255, 1024
	// maxTags is the maximum number of tags of a runner.
	maxTags = 50
)

// apply changes a runner.
func (r *settings) apply(to *runner.Runner) error {
	set(&to.Description, r.Description)
	set(&to.Locked, r.Locked)
	set(&to.RunUntagged, r.RunUntagged)
	set(&to.MaintenanceNote, r.MaintenanceNote)
	set(&to.Paused, r.Paused)
	if r.Active.Set && !r.Paused.Set {
		to.Paused = !r.Active.Or(true)
	}
	if r.Tags.Set {
		to.Tags = slices.Compact(slices.Sorted(slices.Values(r.Tags.Value)))
	}
	if r.AccessLevel != "" {
		to.Protected = r.AccessLevel == refProtected
	}
	if r.MaximumTimeout.Set {
		to.MaximumTimeout = time.Duration(r.MaximumTimeout.Value) * time.Second
	}
	return check(*to)
}

const refProtected = "ref_protected"

func set[T any](to *T, o endpoint.Optional[T]) {
	if o.Set {
		*to = o.Value
	}
}

func check(r runner.Runner) error {
	wrong := map[string][]string{}
	if utf8.RuneCountInString(r.Description) > maxText {
		wrong["description"] = []string{fmt.Sprintf("is too long (maximum is %d characters)", maxText)}
	}
	if utf8.RuneCountInString(r.MaintenanceNote) > maxNote {
		wrong["maintenance_note"] = []string{fmt.Sprintf("is too long (maximum is %d characters)", maxNote)}
	}
	long := func(tag string) bool { return utf8.RuneCountInString(tag) > maxText || strings.TrimSpace(tag) == "" }
	switch {
	case len(r.Tags) > maxTags:
		wrong["tags_list"] = []string{fmt.Sprintf("Too many tags specified. Please limit the number of tags to %d", maxTags)}
	case slices.ContainsFunc(r.Tags, long):
		wrong["tags_list"] = []string{fmt.Sprintf("a tag must have 1 to %d characters", maxText)}
	case len(r.Tags) == 0 && !r.RunUntagged:
		wrong["tags_list"] = []string{"can not be empty when runner is not allowed to pick untagged jobs"}
	}
	if len(wrong) > 0 {
		return endpoint.Invalid(wrong)
	}
	return nil
}

type createRequest struct {
	Type      string `param:"runner_type" required:"" values:"instance_type,group_type,project_type" doc:"Type of the runner."`
	GroupID   int64  `param:"group_id" doc:"Id of the group of a group_type runner."`
	ProjectID int64  `param:"project_id" doc:"Id of the project of a project_type runner."`
	settings
}

func (f *Family) create(ctx context.Context, s auth.Instance, r *createRequest) (Registration, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Registration{}, err
	}
	places, err := f.place(ctx, s.Subject, r)
	if err != nil {
		return Registration{}, err
	}
	return f.add(ctx, runner.Runner{Type: runner.Type(r.Type), User: item.User(u)}, r.settings, places...)
}

// add creates a runner with settings.
func (f *Family) add(ctx context.Context, made runner.Runner, s settings, places ...database.Subject) (Registration, error) {
	made.RunUntagged, made.Tags = true, []string{}
	if err := s.apply(&made); err != nil {
		return Registration{}, err
	}
	token := runner.NewToken()
	if err := f.Activity.Runners.Create(ctx, &made, token, places...); err != nil {
		return Registration{}, err
	}
	did(ctx, "create", made)
	return Registration{ID: made.ID, Token: token}, nil
}

// place returns the project or group of a new runner, in which the caller must be able to create it.
func (f *Family) place(ctx context.Context, s auth.Subject, r *createRequest) ([]database.Subject, error) {
	var scope catalog.Scope
	var err error
	switch runner.Type(r.Type) {
	case runner.OfProject:
		if r.ProjectID == 0 {
			return nil, endpoint.Parameters("project_id is missing")
		}
		scope, err = f.Guard.Locate(ctx, s, auth.AdminRunners, r.ProjectID)
	case runner.OfGroup:
		if r.GroupID == 0 {
			return nil, endpoint.Parameters("group_id is missing")
		}
		scope, err = f.Guard.Locate(ctx, s, auth.AdminGroupRunners, r.GroupID)
	default:
		if !s.Caller.Admin {
			err = endpoint.Forbidden("")
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return []database.Subject{item.Place(scope)}, nil
}

type updateRequest struct {
	ID int64 `param:"id" doc:"Id of the runner."`
	settings
}

func (f *Family) update(ctx context.Context, s auth.Instance, r *updateRequest) (Detailed, error) {
	found, places, err := f.managed(ctx, s.Subject, r.ID)
	if err == nil {
		err = r.apply(&found)
	}
	if err == nil {
		err = answer(f.Activity.Runners.Update(ctx, found))
	}
	if err != nil {
		return Detailed{}, err
	}
	did(ctx, "update", found)
	return f.detail(ctx, found, places)
}

type assignRequest struct {
	RunnerID int64 `param:"runner_id" required:"" doc:"Id of the runner."`
}

func (f *Family) assign(ctx context.Context, s auth.Project, r *assignRequest) (Runner, error) {
	found, _, err := f.managed(ctx, s.Subject, r.RunnerID)
	switch {
	case err != nil:
		return Runner{}, err
	case found.Type != runner.OfProject:
		return Runner{}, endpoint.BadRequest("only a runner of a project can be assigned to another project")
	case found.Locked:
		return Runner{}, endpoint.Forbidden("Runner is locked")
	}
	if err := f.Activity.Runners.Assign(ctx, found.ID, item.Place(s.Scope)); err != nil {
		return Runner{}, err
	}
	did(ctx, "assign", found)
	return f.show(found), nil
}

type unassignRequest struct {
	RunnerID int64 `param:"runner_id" doc:"Id of the runner."`
}

func (f *Family) unassign(ctx context.Context, s auth.Project, r *unassignRequest) (endpoint.None, error) {
	places, err := f.Activity.Runners.Places(ctx, r.RunnerID)
	switch {
	case err != nil:
		return endpoint.None{}, err
	case len(places) == 1 && places[0].UID == s.Scope.Project.UID:
		return endpoint.None{}, endpoint.Forbidden("Only one project associated with the runner. Please remove the runner instead")
	}
	if err := f.Activity.Runners.Unassign(ctx, r.RunnerID, item.Place(s.Scope)); err != nil {
		return endpoint.None{}, answer(err)
	}
	did(ctx, "unassign", runner.Runner{ID: r.RunnerID})
	return endpoint.None{}, nil
}

// did records a write for the audit.
func did(ctx context.Context, verb string, r runner.Runner) {
	audit.From(ctx).Did(verb, audit.Runner, fmt.Sprintf("runners/%d", r.ID), r.ID)
}
