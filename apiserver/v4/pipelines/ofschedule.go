package pipelines

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/schedule"
)

// foundSchedule is a schedule as the record of a request.
type foundSchedule struct{ schedule.Schedule }

// Parameter implements auth.Kept.
func (foundSchedule) Parameter() string { return "Id of the schedule." }

// Owner implements auth.Kept: the user with whose rights the pipelines run.
func (s foundSchedule) Owner() types.UID { return s.Schedule.Owner.UID }

func (f *Family) findSchedule(ctx context.Context, s auth.Subject, id int64) (foundSchedule, error) {
	of, err := f.Activity.Schedules.Get(ctx, s.Scope.Project.UID, id)
	if errors.Is(err, schedule.ErrNotFound) {
		err = endpoint.NotFound("Pipeline Schedule")
	}
	return foundSchedule{of}, err
}

type ofScheduleRequest struct{ endpoint.Paging }

func (f *Family) listOfSchedule(ctx context.Context, s auth.ProjectRecord[foundSchedule], r *ofScheduleRequest) (endpoint.List[Pipeline], error) {
	return f.listed(ctx, s.Subject, r.Paging, pipeline.Query{
		Project: s.Scope.Project.UID, Order: pipeline.ByID, Ascending: true, Conditions: []pipeline.Condition{pipeline.OfSchedule(s.Record.ID)},
	})
}
