// Package schedules is the family of the schedules that create pipelines.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/schedule"
	"github.com/forgeplane/forgeplane/internal/timetable"
)

// Family serves schedules.
type Family struct {
	family.Kit
	launcher *launch.Launcher
}

// New returns the family.
func New(k family.Kit) *Family { return &Family{k, launch.New(k)} }

const (
	all  = "/projects/{id}/pipeline_schedules"
	one  = all + "/{pipeline_schedule_id}"
	keys = one + "/variables"
)

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	own := func(e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.UpdatePipelines).Asks(auth.AdminPipelines).Found(f.find)
	}
	return endpoint.Table{
		endpoint.Get(all, f.list).Needs(auth.ReadPipelines).Anonymous(endpoint.Served).
			Doc("List the schedules of a project."),
		endpoint.Post(all, f.create).Needs(auth.CreatePipelines).
			Doc("Create a schedule, whose pipelines run with the rights of the caller."),
		endpoint.Get(one, f.get).Needs(auth.ReadPipelines).Asks(auth.AdminPipelines).Found(f.find).Anonymous(endpoint.Served).
			Doc("Get a schedule. Its owner and Maintainers also get its variables."),
		own(endpoint.Put(one, f.update)).
			Doc("Update a schedule. Only for its owner and Maintainers."),
		own(endpoint.Delete(one, f.remove)).
			Doc("Delete a schedule. Only for its owner and Maintainers."),
		own(endpoint.Post(one+"/take_ownership", f.takeOwnership)).
			Doc("Take ownership of a schedule. Its pipelines run with the rights of the owner."),
		own(endpoint.Post(one+"/play", f.play)).
			Doc("Create a pipeline of a schedule now, with the rights of the caller."),
		own(endpoint.Post(keys, f.addVariable)).
			Doc("Create a variable of a schedule. Only for its owner and Maintainers."),
		own(endpoint.Put(keys+"/{key}", f.changeVariable)).
			Doc("Update a variable of a schedule. Only for its owner and Maintainers."),
		own(endpoint.Delete(keys+"/{key}", f.removeVariable)).Status(http.StatusAccepted).
			Doc("Delete a variable of a schedule. Only for its owner and Maintainers."),
	}
}

// found is a schedule as the record of a request.
type found struct{ schedule.Schedule }

// Parameter implements auth.Kept.
func (found) Parameter() string { return "Id of the schedule." }

// Owner implements auth.Kept: the user with whose rights the pipelines run.
func (s found) Owner() types.UID { return s.Schedule.Owner.UID }

func (f *Family) find(ctx context.Context, s auth.Subject, id int64) (found, error) {
	of, err := f.Activity.Schedules.Get(ctx, s.Scope.Project.UID, id)
	return found{of}, answer(err)
}

// answer converts an error of the store that callers can know.
func answer(err error) error {
	switch {
	case errors.Is(err, schedule.ErrNotFound):
		return endpoint.NotFound("Pipeline Schedule")
	case errors.Is(err, schedule.ErrTooMany):
		return endpoint.Invalid(map[string][]string{"base": {schedule.ErrTooMany.Error()}})
	case errors.Is(err, schedule.ErrExists):
		return endpoint.Invalid(map[string][]string{"key": {"has already been taken"}})
	case errors.Is(err, timetable.ErrSchedule):
		return endpoint.Invalid(map[string][]string{"cron": {"syntax is invalid"}}).Describe("cron: %s.", timetable.ErrSchedule)
	case errors.Is(err, timetable.ErrZone):
		return endpoint.Invalid(map[string][]string{"cron_timezone": {"syntax is invalid"}}).Describe("cron_timezone: %s.", timetable.ErrZone)
	default:
		return err
	}
}

// administers reports whether the caller is a Maintainer or the owner of a schedule.
func administers(s auth.Subject, of found) bool {
	return s.Has(s.Access, auth.AdminPipelines) || s.Caller.User != nil && s.Caller.User.UID == of.Owner()
}

// admit returns 403 if the caller can change nothing: the project is archived, or others own the schedule.
func admit(s auth.ProjectRecord[found]) error {
	if s.Scope.Project.Spec.Archived || !administers(s.Subject, s.Record) {
		return endpoint.Forbidden("")
	}
	return nil
}

// did records a write for the audit.
func did(ctx context.Context, verb string, s auth.Subject, of schedule.Schedule) {
	audit.From(ctx).Did(verb, audit.Schedule, fmt.Sprintf("%s/-/pipeline_schedules/%d", s.Scope.Path(), of.ID), of.ID)
}
