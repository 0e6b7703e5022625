package pipeline

import (
	"maps"
	"time"

	"github.com/forgeplane/forgeplane/internal/job"
)

// run is a pipeline with its jobs in the order of their positions, apart from those that were retried. It changes in memory.
type run struct {
	Pipeline
	jobs []*Job
	now  time.Time
	// was is the status before, and canceled says that the run was canceled as a whole.
	was      Status
	canceled bool
	// changed are the jobs that have changed, and retries the new jobs by the jobs that they replace.
	changed map[*Job]bool
	retries map[*Job]*Job
	// offers are the tasks of pipelines whose jobs can have a resource now.
	offers []job.Task
}

// newRun returns a run that changes at a time.
func newRun(p Pipeline, jobs []*Job, now time.Time) *run {
	return &run{Pipeline: p, jobs: jobs, now: now, was: p.Status, changed: map[*Job]bool{}, retries: map[*Job]*Job{}}
}

// outcome returns the effect of a job on other jobs and on the pipeline.
func (j *Job) outcome() outcome {
	switch {
	case j.AllowFailure && (j.Status == Failed || j.Status == Canceled):
		return warning
	case j.AllowFailure && j.Status == Manual:
		return ignored
	default:
		return j.Status
	}
}

// become changes the status of a job. It reports false, and changes nothing, if the job cannot have that status now.
func (r *run) become(j *Job, next Status) bool {
	if !j.Status.CanBecome(next) {
		return false
	}
	j.Status = next
	switch next {
	case Scheduled:
		j.Scheduled = r.now.Add(j.StartIn)
	case Pending:
		j.Queued = r.now
	case Running:
		j.Started = r.now
	case Success, Failed, Canceled:
		j.Finished = r.now
	}
	r.changed[j] = true
	return true
}

// fail makes a job fail for a reason.
func (r *run) fail(j *Job, reason string) bool {
	if !r.become(j, Failed) {
		return false
	}
	j.FailureReason = reason
	return true
}

// enqueue hands a job to the runners, or to the queue of bridges. A job with a resource group waits for its resource before.
func (r *run) enqueue(j *Job) bool {
	if j.ResourceGroup != "" {
		return r.become(j, WaitingForResource)
	}
	return r.become(j, Pending)
}

// advance changes all jobs that need not wait any longer, and gives the pipeline the status that follows.
func (r *run) advance() {
	for r.step() {
	}
	r.conclude()
}

// step looks at each job once, and reports whether one has changed.
func (r *run) step() (changed bool) {
	byName := make(map[string]*Job, len(r.jobs))
	for _, j := range r.jobs {
		if j.External {
			continue
		}
		byName[j.Name] = j
		if j.outcome() == Failed && r.OnJobFailure == "all" {
			changed = r.cancel() || changed
		}
	}
	earlier, stage := outcomes{}, outcomes{}
	for i, j := range r.jobs {
		if i > 0 && j.StageIndex != r.jobs[i-1].StageIndex {
			maps.Copy(earlier, stage)
			stage = outcomes{}
		}
		before := earlier.status()
		if j.HasNeeds {
			before = needs(j, byName)
		}
		changed = r.release(j, before) || changed
		stage[j.outcome()] = true
	}
	return changed
}

// needs returns the common status of the jobs that a job needs.
func needs(j *Job, byName map[string]*Job) Status {
	needed := make([]*Job, 0, len(j.Needs))
	for _, n := range j.Needs {
		if other := byName[n.Job]; other != nil {
			needed = append(needed, other)
		}
	}
	return outcomesOf(needed...).needed()
}

// release starts a job, or skips it, if it need not wait any longer. before is the status of the jobs before it.
func (r *run) release(j *Job, before Status) bool {
	switch {
	case j.External:
		return false
	case j.Status == Scheduled && !j.Scheduled.After(r.now):
		return r.enqueue(j)
	case j.Status != Created || !before.Ended():
		return false
	case !j.runsAfter(before):
		return r.become(j, Skipped)
	case j.When == "manual":
		return r.become(j, Manual)
	case j.When == "delayed":
		return r.become(j, Scheduled)
	default:
		return r.enqueue(j)
	}
}

// runsAfter reports whether a job runs if the jobs before it have a status. Jobs of earlier stages can be skipped, but not jobs that the job needs.
func (j *Job) runsAfter(before Status) bool {
	switch j.When {
	case "on_failure":
		return before == Failed
	case "always":
		return before != Canceled
	default:
		return before == Success || before == Skipped && !j.HasNeeds
	}
}

// conclude gives the pipeline the status that follows from its jobs. A pipeline without jobs, or with mistakes in its configuration, keeps its own.
func (r *run) conclude() {
	if len(r.jobs) == 0 || r.Errors != "" {
		return
	}
	if r.Started.IsZero() && anyHas(r.jobs, Running) {
		r.Started = r.now
	}
	next := outcomesOf(r.jobs...).status()
	if next == r.Status {
		return
	}
	r.Status, r.Updated, r.Finished = next, r.now, time.Time{}
	if next.Ended() {
		r.Finished = r.now
	}
}

// resume lets a job that has triggered a pipeline, and has its result, wait for that pipeline again.
func (r *run) resume(j *Job) bool {
	if j.Status != Success && j.Status != Failed {
		return false
	}
	j.Status, j.FailureReason, j.Finished = Running, "", time.Time{}
	r.changed[j] = true
	r.awaken()
	return true
}

// cancel cancels all jobs that have not ended, apart from manual jobs.
func (r *run) cancel() (changed bool) {
	r.canceled = true
	for _, j := range r.jobs {
		changed = r.become(j, Canceled) || changed
	}
	return changed
}

// retry replaces a job by a new one, and returns that. Skipped jobs wait again, because the jobs before them decide again.
func (r *run) retry(j *Job, by User) *Job {
	next := &Job{
		In: j.In, PipelineID: j.PipelineID, Position: j.Position, Name: j.Name, Stage: j.Stage, StageIndex: j.StageIndex, Bridge: j.Bridge,
		Status: Created, When: j.When, StartIn: j.StartIn, AllowFailure: j.AllowFailure && !j.Excused, Interruptible: j.Interruptible, ResourceGroup: j.ResourceGroup, Environment: j.Environment, Tier: j.Tier,
		HasNeeds: j.HasNeeds, Needs: j.Needs, Tags: j.Tags, User: by, Created: r.now,
	}
	j.Retried, r.changed[j], r.retries[j] = true, true, next
	for i := range r.jobs {
		if r.jobs[i] == j {
			r.jobs[i] = next
		}
	}
	r.awaken()
	return next
}

// awaken makes skipped jobs wait for the jobs before them again.
func (r *run) awaken() {
	for _, j := range r.jobs {
		if j.Status == Skipped && !j.External {
			r.become(j, Created)
		}
	}
}

func anyHas(jobs []*Job, s Status) bool {
	for _, j := range jobs {
		if j.Status == s {
			return true
		}
	}
	return false
}
