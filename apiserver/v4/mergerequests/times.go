package mergerequests

import (
	"context"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// timeTable lists the endpoints about the estimated and the spent time of a merge request.
func (f *Family) timeTable() endpoint.Table {
	write := func(doc string, e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(auth.UpdateMergeRequests).Found(f.items.MergeRequest).Doc(doc)
	}
	return endpoint.Table{
		endpoint.Get(one+"/time_stats", f.times).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("Get the estimated and the spent time of a merge request."),
		write("Set the estimated time of a merge request.", endpoint.Post(one+"/time_estimate", f.estimate).Status(http.StatusOK)),
		write("Reset the estimated time of a merge request.", endpoint.Post(one+"/reset_time_estimate", f.resetEstimate).Status(http.StatusOK)),
		write("Add to the time that was spent on a merge request.", endpoint.Post(one+"/add_spent_time", f.spend)),
		write("Reset the time that was spent on a merge request.", endpoint.Post(one+"/reset_spent_time", f.resetSpent).Status(http.StatusOK)),
	}
}

func (f *Family) times(_ context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (item.TimeStats, error) {
	return item.Times(s.Record.Estimate, s.Record.Spent), nil
}

type estimateRequest struct {
	Duration string `param:"duration" required:"" example:"3h30m" doc:"Time, in the units mo, w, d, h, m and s. A day has 8 hours, and a week 5 days."`
}

func (f *Family) estimate(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *estimateRequest) (item.TimeStats, error) {
	seconds, is := item.ParseDuration(r.Duration)
	if !is || seconds < 0 {
		return item.TimeStats{}, invalidDuration()
	}
	return f.setTimes(ctx, s, func(m *mergerequest.MergeRequest) error {
		m.Estimate = seconds
		return nil
	})
}

func invalidDuration() error {
	return endpoint.Parameters("duration is invalid").Describe("A duration is written like 1w 2d 3h30m.")
}

func (f *Family) resetEstimate(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (item.TimeStats, error) {
	return f.setTimes(ctx, s, func(m *mergerequest.MergeRequest) error {
		m.Estimate = 0
		return nil
	})
}

type spendRequest struct {
	Duration string `param:"duration" required:"" example:"-1h" doc:"Time to add, or with a minus to subtract, in the units mo, w, d, h, m and s. A day has 8 hours, and a week 5 days."`
	Summary  string `param:"summary" doc:"Description of the work; ignored."`
}

func (f *Family) spend(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *spendRequest) (item.TimeStats, error) {
	seconds, is := item.ParseDuration(r.Duration)
	if !is || seconds == 0 {
		return item.TimeStats{}, invalidDuration()
	}
	return f.setTimes(ctx, s, func(m *mergerequest.MergeRequest) error {
		if m.Spent += seconds; m.Spent < 0 {
			return endpoint.Invalid(map[string][]string{"base": {"Time to subtract exceeds the total time spent"}})
		}
		return nil
	})
}

func (f *Family) resetSpent(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], _ *endpoint.None) (item.TimeStats, error) {
	return f.setTimes(ctx, s, func(m *mergerequest.MergeRequest) error {
		m.Spent = 0
		return nil
	})
}

// setTimes changes the times of a merge request.
func (f *Family) setTimes(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], change func(*mergerequest.MergeRequest) error) (item.TimeStats, error) {
	m, err := f.Activity.MergeRequests.Update(ctx, s.Scope.Project.UID, s.Record.IID, change)
	if err != nil {
		return item.TimeStats{}, answer(err)
	}
	did(ctx, "update", s.Scope, m)
	return item.Times(m.Estimate, m.Spent), nil
}
