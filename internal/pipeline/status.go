package pipeline

import "slices"

// Status is the status of a job or of a pipeline.
type Status string

// The statuses. A pipeline has the status that follows from its jobs.
const (
	// Created is the status of jobs that wait for other jobs.
	Created Status = "created"
	// WaitingForResource is the status of jobs that wait for their resource group.
	WaitingForResource Status = "waiting_for_resource"
	// Pending is the status of jobs that wait for a runner.
	Pending  Status = "pending"
	Running  Status = "running"
	Success  Status = "success"
	Failed   Status = "failed"
	Canceled Status = "canceled"
	Skipped  Status = "skipped"
	// Manual is the status of jobs that wait for a user, and Scheduled of those that wait for a time.
	Manual    Status = "manual"
	Scheduled Status = "scheduled"
)

// transitions are the statuses to which a job can change, by its present status. A job that has run changes no more: a retry is another job. A
// skipped job waits for other jobs again if one of those is retried.
var transitions = map[Status][]Status{
	Created:            {WaitingForResource, Pending, Manual, Scheduled, Skipped, Canceled, Failed},
	WaitingForResource: {Pending, Canceled, Failed},
	Manual:             {WaitingForResource, Pending, Failed},
	Scheduled:          {WaitingForResource, Pending, Canceled, Failed},
	Pending:            {Running, Canceled, Failed},
	Running:            {Success, Failed, Canceled},
	Skipped:            {Created},
}

// CanBecome reports whether a job can change from one status to another.
func (s Status) CanBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// Ended reports whether nothing more happens to a job or pipeline, unless it is retried.
func (s Status) Ended() bool {
	return s == Success || s == Failed || s == Canceled || s == Skipped
}

// outcome is the effect of the status of a job on other jobs and on the pipeline: its status, or one of these two.
type outcome = Status

const (
	// warning is the outcome of a job that has failed or was canceled, and is allowed to fail.
	warning outcome = "success_with_warnings"
	// ignored is the outcome of a manual job that is allowed to fail: nothing waits for it, apart from jobs that need it.
	ignored outcome = "ignored"
)

// outcomes is a set of outcomes.
type outcomes map[outcome]bool

// outcomesOf returns the outcomes of some jobs.
func outcomesOf(jobs ...*Job) outcomes {
	all := outcomes{}
	for _, j := range jobs {
		all[j.outcome()] = true
	}
	return all
}

func (o outcomes) has(some ...outcome) bool {
	return slices.ContainsFunc(some, func(one outcome) bool { return o[one] })
}

// within reports whether the set has no other outcomes than these.
func (o outcomes) within(some ...outcome) bool {
	for one := range o {
		if !slices.Contains(some, one) {
			return false
		}
	}
	return true
}

// status returns the common status of jobs with these outcomes.
func (o outcomes) status() Status {
	switch {
	case len(o) == 0:
		return Success
	case o.within(Skipped, ignored):
		return Skipped
	case o.within(Success, Skipped, warning, ignored):
		return Success
	case o.within(Created, warning, ignored):
		return Created
	case o.within(Canceled, Success, Skipped, warning, ignored):
		return Canceled
	case o.within(Pending, Created, Skipped, warning, ignored):
		return Pending
	case o.has(Running, Pending):
		return Running
	}
	for _, s := range []Status{WaitingForResource, Manual, Scheduled} {
		if o[s] {
			return s
		}
	}
	if o[Created] {
		return Running
	}
	return Failed
}

// needed returns the common status of jobs that another one needs. Unlike the jobs of earlier stages, they must all have run: it is Created while
// one of them waits, also for a user.
func (o outcomes) needed() Status {
	switch {
	case o[Skipped]:
		return Skipped
	case !o.within(Success, Failed, Canceled, warning):
		return Created
	}
	return o.status()
}
