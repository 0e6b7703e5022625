package item

import (
	"context"
	"fmt"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Timed is an item of a project that has an estimated and a spent time.
type Timed interface {
	Item
	// Times returns the times in seconds.
	Times() (estimate, spent int64)
}

// Times implements Timed.
func (i Issue) Times() (estimate, spent int64) { return i.Estimate, i.Spent }

// Times implements Timed.
func (m MergeRequest) Times() (estimate, spent int64) { return m.Estimate, m.Spent }

// Timekeeping has the endpoints about the times of items of a kind.
type Timekeeping[T Timed] struct {
	Kind[T]
	// Write is the ability to change the times.
	Write endpoint.Ability
	// Update changes the times of an item, and returns them.
	Update func(ctx context.Context, s auth.ProjectRecord[T], change func(estimate, spent *int64) error) (TimeStats, error)
}

// Table lists the endpoints.
func (k Timekeeping[T]) Table() endpoint.Table {
	write := func(doc string, e *endpoint.Endpoint) *endpoint.Endpoint {
		return e.Needs(k.Write).Asks(k.Asks...).Found(k.Find).Doc(fmt.Sprintf(doc, k.Noun))
	}
	return endpoint.Table{
		endpoint.Get(k.Path+"/time_stats", k.get).Needs(k.Read).Asks(k.Asks...).Found(k.Find).Anonymous(endpoint.Served).
			Doc("Get the estimated and the spent time of " + k.Noun + "."),
		write("Update the estimated time of %s.", endpoint.Post(k.Path+"/time_estimate", k.estimate).Status(http.StatusOK)),
		write("Reset the estimated time of %s.", endpoint.Post(k.Path+"/reset_time_estimate", k.resetEstimate).Status(http.StatusOK)),
		write("Update the spent time of %s: add to it.", endpoint.Post(k.Path+"/add_spent_time", k.spend)),
		write("Reset the spent time of %s.", endpoint.Post(k.Path+"/reset_spent_time", k.resetSpent).Status(http.StatusOK)),
	}
}

func (Timekeeping[T]) get(_ context.Context, s auth.ProjectRecord[T], _ *endpoint.None) (TimeStats, error) { //nolint:unparam // a handler returns an error
	return Times(s.Record.Times()), nil
}

type estimateRequest struct {
	Duration string `param:"duration" required:"" example:"3h30m" doc:"Time, in the units mo, w, d, h, m and s. A day has 8 hours, and a week 5 days."`
}

func (k Timekeeping[T]) estimate(ctx context.Context, s auth.ProjectRecord[T], r *estimateRequest) (TimeStats, error) {
	seconds, is := ParseDuration(r.Duration)
	if !is || seconds < 0 {
		return TimeStats{}, invalidDuration()
	}
	return k.Update(ctx, s, func(estimate, _ *int64) error {
		*estimate = seconds
		return nil
	})
}

func invalidDuration() error {
	return endpoint.Parameters("duration is invalid").Describe("A duration is written like 1w 2d 3h30m.")
}

func (k Timekeeping[T]) resetEstimate(ctx context.Context, s auth.ProjectRecord[T], _ *endpoint.None) (TimeStats, error) {
	return k.Update(ctx, s, func(estimate, _ *int64) error {
		*estimate = 0
		return nil
	})
}

type spendRequest struct {
	Duration string `param:"duration" required:"" example:"-1h" doc:"Time to add, or with a minus to subtract, in the units mo, w, d, h, m and s. A day has 8 hours, and a week 5 days."`
	Summary  string `param:"summary" doc:"Description of the work; ignored."`
}

func (k Timekeeping[T]) spend(ctx context.Context, s auth.ProjectRecord[T], r *spendRequest) (TimeStats, error) {
	seconds, is := ParseDuration(r.Duration)
	if !is || seconds == 0 {
		return TimeStats{}, invalidDuration()
	}
	return k.Update(ctx, s, func(_, spent *int64) error {
		if *spent += seconds; *spent < 0 {
			return endpoint.Invalid(map[string][]string{"base": {"Time to subtract exceeds the total time spent"}})
		}
		return nil
	})
}

func (k Timekeeping[T]) resetSpent(ctx context.Context, s auth.ProjectRecord[T], _ *endpoint.None) (TimeStats, error) {
	return k.Update(ctx, s, func(_, spent *int64) error {
		*spent = 0
		return nil
	})
}
