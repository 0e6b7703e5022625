package schedules

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

type createRequest struct {
	Description string `param:"description" required:"" blank:"refuse" example:"Every night" doc:"Purpose of the schedule."`
	Ref         string `param:"ref" required:"" blank:"refuse" example:"main" doc:"Name of a branch or tag."`
	Cron        string `param:"cron" required:"" blank:"refuse" example:"0 3 * * *" doc:"When pipelines are created, in the five fields of cron."`
	Timezone    string `param:"cron_timezone" default:"UTC" example:"Europe/Berlin" doc:"A time zone of the IANA database."`
	Active      bool   `param:"active" default:"true" doc:"Whether pipelines are created."`
}

func (f *Family) create(ctx context.Context, s auth.Project, r *createRequest) (Detailed, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	if s.Scope.Project.Spec.Archived {
		return Detailed{}, endpoint.Forbidden("")
	}
	of := schedule.Schedule{
		In: item.Place(s.Scope), Description: r.Description, Ref: r.Ref, Cron: r.Cron, Zone: r.Timezone, Active: r.Active, Owner: item.User(u),
	}
	if err := checkDescription(of.Description); err != nil {
		return Detailed{}, err
	}
	if err := f.checkRef(ctx, s.Subject, of.Ref); err != nil {
		return Detailed{}, err
	}
	if err := f.Activity.Schedules.Create(ctx, &of); err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, "create", s.Subject, of)
	return f.detail(ctx, s.Subject, of)
}

// maxDescription is the maximum size of a description in bytes.
const maxDescription = 255

func checkDescription(text string) error {
	if len(text) > maxDescription {
		return endpoint.Invalid(map[string][]string{"description": {fmt.Sprintf("is too long (maximum is %d bytes)", maxDescription)}})
	}
	return nil
}

// checkRef returns 400 if a branch or tag does not exist, and 403 if the caller cannot run its pipelines.
func (f *Family) checkRef(ctx context.Context, s auth.Subject, name string) error {
	_, tag, err := f.launcher.Resolve(ctx, s.Scope.Project, name)
	if ref.Missing(err) {
		return endpoint.Invalid(map[string][]string{"ref": {"does not exist"}})
	} else if err != nil {
		return err
	}
	may, err := f.launcher.MayRun(ctx, s, name, tag)
	if err == nil && !may {
		err = endpoint.Forbidden("")
	}
	return err
}

type updateRequest struct {
	Description endpoint.Optional[string] `param:"description" atLeastOne:"all" blank:"refuse" example:"Every night" doc:"Purpose of the schedule."`
	Ref         endpoint.Optional[string] `param:"ref" atLeastOne:"all" blank:"refuse" doc:"Name of a branch or tag."`
	Cron        endpoint.Optional[string] `param:"cron" atLeastOne:"all" blank:"refuse" doc:"When pipelines are created, in the five fields of cron."`
	Timezone    endpoint.Optional[string] `param:"cron_timezone" atLeastOne:"all" doc:"A time zone of the IANA database."`
	Active      endpoint.Optional[bool]   `param:"active" atLeastOne:"all" doc:"Whether pipelines are created."`
}

func (f *Family) update(ctx context.Context, s auth.ProjectRecord[found], r *updateRequest) (Detailed, error) {
	if err := admit(s); err != nil {
		return Detailed{}, err
	}
	of := s.Record.Schedule
	of.Description, of.Ref, of.Cron = r.Description.Or(of.Description), r.Ref.Or(of.Ref), r.Cron.Or(of.Cron)
	of.Zone, of.Active = r.Timezone.Or(of.Zone), r.Active.Or(of.Active)
	if err := checkDescription(of.Description); err != nil {
		return Detailed{}, err
	}
	if of.Ref != s.Record.Ref {
		if err := f.checkRef(ctx, s.Subject, of.Ref); err != nil {
			return Detailed{}, err
		}
	}
	return f.save(ctx, s, "update", of)
}

// save writes a changed schedule.
func (f *Family) save(ctx context.Context, s auth.ProjectRecord[found], verb string, of schedule.Schedule) (Detailed, error) {
	if err := f.Activity.Schedules.Update(ctx, &of); err != nil {
		return Detailed{}, answer(err)
	}
	did(ctx, verb, s.Subject, of)
	return f.detail(ctx, s.Subject, of)
}

func (f *Family) takeOwnership(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Detailed, error) {
	u, err := s.Caller.Person()
	if err != nil {
		return Detailed{}, err
	}
	if s.Scope.Project.Spec.Archived {
		return Detailed{}, endpoint.Forbidden("")
	}
	of := s.Record.Schedule
	of.Owner = item.User(u)
	return f.save(ctx, s, "take", of)
}

func (f *Family) remove(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (endpoint.None, error) {
	if !administers(s.Subject, s.Record) {
		return endpoint.None{}, endpoint.Forbidden("")
	}
	if err := f.Activity.Schedules.Delete(ctx, s.Record.ID); err != nil {
		return endpoint.None{}, answer(err)
	}
	did(ctx, "delete", s.Subject, s.Record.Schedule)
	return endpoint.None{}, nil
}

// Played is the answer to a pipeline of a schedule.
type Played struct {
	Message string `json:"message" example:"201 Created"`
}

func (f *Family) play(ctx context.Context, s auth.ProjectRecord[found], _ *endpoint.None) (Played, error) {
	if _, err := s.Caller.Person(); err != nil {
		return Played{}, err
	}
	if s.Scope.Project.Spec.Archived {
		return Played{}, endpoint.Forbidden("")
	}
	r, err := f.launcher.OfSchedule(ctx, s.Record.Schedule, s.Subject)
	if ref.Missing(err) {
		return Played{}, endpoint.Invalid(map[string][]string{"base": {"Reference not found"}})
	} else if err != nil {
		return Played{}, err
	}
	if may, err := f.launcher.MayRun(ctx, s.Subject, r.Ref, r.Tag); err != nil {
		return Played{}, err
	} else if !may {
		return Played{}, endpoint.Forbidden("")
	}
	if _, err := f.launcher.Launch(ctx, r); err != nil {
		return Played{}, launch.Refused(err)
	}
	did(ctx, "play", s.Subject, s.Record.Schedule)
	return Played{"201 Created"}, nil
}
