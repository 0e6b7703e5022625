package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/test/seed"
)

// modeled is a job of the model. Its status is worked out each time, from what has happened to it and from the jobs before it.
type modeled struct {
	name         string
	stage        int
	needs        []string
	dag          bool
	when         string
	allowFailure bool
	// happened is empty until the job starts, waits for a user or time, or is canceled.
	happened Status
	// retries is the value of retry, and attempts says how often the job has been created.
	retries, attempts int
}

// model is a pipeline in the words of the documentation.
type model []*modeled

// status returns the status of a job.
func (m model) status(j *modeled) Status {
	if j.happened != "" {
		return j.happened
	}
	before, wait := m.before(j)
	switch {
	case wait:
		return Created
	case !slices.Contains(runsAfter(j), before):
		return Skipped
	}
	return map[string]Status{"manual": Manual, "delayed": Scheduled}[j.when] // "" for a job that starts
}

// runsAfter returns the results of the jobs before a job with which it runs.
func runsAfter(j *modeled) []Status {
	switch {
	case j.when == "always":
		return []Status{Success, Failed, Skipped}
	case j.when == "on_failure":
		return []Status{Failed}
	case j.dag:
		return []Status{Success}
	default:
		return []Status{Success, Skipped}
	}
}

// before returns the result of the jobs before a job, and whether the job waits for them.
func (m model) before(j *modeled) (result Status, wait bool) {
	var all []*modeled
	for _, other := range m {
		if j.dag && slices.Contains(j.needs, other.name) || !j.dag && other.stage < j.stage {
			all = append(all, other)
		}
	}
	failed, canceled, skipped, ran := 0, 0, 0, 0
	for _, other := range all {
		s := m.status(other)
		switch {
		case s == Success, (s == Failed || s == Canceled) && other.allowFailure:
			ran++
		case s == Manual && other.allowFailure && !j.dag: // nothing waits for it
		case s == Failed:
			failed++
		case s == Canceled:
			canceled++
		case s == Skipped:
			skipped++
		default:
			wait = true
		}
	}
	switch {
	case j.dag && skipped > 0: // it never runs, whatever the others do
		return Skipped, false
	case wait:
		return "", true
	case failed > 0:
		return Failed, false
	case canceled > 0:
		return Canceled, false
	case len(all) == 0 || ran > 0:
		return Success, false
	default:
		return Skipped, false
	}
}

// overall returns the status of the pipeline.
func (m model) overall() Status {
	n, all, warnings := map[Status]int{}, 0, 0
	for _, j := range m {
		s := m.status(j)
		switch {
		case j.allowFailure && s == Manual: // it does not count
		case j.allowFailure && (s == Failed || s == Canceled):
			warnings++
		default:
			n[s]++
			all++
		}
	}
	switch {
	case n[Failed]+n[Canceled]+n[Skipped]+n[Success] == all: // nothing can happen any more
		switch {
		case n[Failed] > 0:
			return Failed
		case n[Canceled] > 0:
			return Canceled
		case n[Success]+warnings > 0:
			return Success
		default:
			return Skipped
		}
	case n[Created] == all:
		return Created
	case n[Running] == 0 && n[Pending] == 0 && n[Manual] > 0:
		return Manual
	case n[Running] == 0 && n[Pending] == 0 && n[Scheduled] > 0:
		return Scheduled
	case n[Pending]+n[Created]+n[Skipped] == all: // nothing that counts has run
		return Pending
	default:
		return Running
	}
}

// settle records the jobs that start, or that wait for a user or time, until nothing changes. They stay so even if a job before them runs again.
func (m model) settle() {
	for again := true; again; {
		again = false
		for _, j := range m {
			s := m.status(j)
			if j.happened == "" && s != Created && s != Skipped {
				if s == "" {
					s = Pending
				}
				j.happened, again = s, true
			}
		}
	}
}

// cancel cancels all jobs that have not ended, apart from manual jobs.
func (m model) cancel() {
	var some []*modeled
	for _, j := range m {
		if s := m.status(j); s == Created || s == Pending || s == Running || s == Scheduled {
			some = append(some, j)
		}
	}
	for _, j := range some {
		j.happened = Canceled
	}
}

// generate returns a random pipeline for both.
func generate(r *rand.Rand) (m model, jobs []*Job) {
	for i := range 2 + r.IntN(9) {
		stage := 0
		if i > 0 {
			stage = m[i-1].stage + r.IntN(2)
		}
		j := &modeled{
			name: fmt.Sprint("job", i), stage: stage, dag: r.IntN(3) == 0, allowFailure: r.IntN(3) == 0,
			retries: r.IntN(3), attempts: 1, when: []string{"on_success", "on_success", "on_success", "on_failure", "always", "manual", "delayed"}[r.IntN(7)],
		}
		for _, other := range m {
			if j.dag && r.IntN(3) == 0 {
				j.needs = append(j.needs, other.name)
			}
		}
		m = append(m, j)
		row := &Job{ID: int64(i + 1), Name: j.name, StageIndex: stage, Position: i, Status: Created, When: j.when, StartIn: time.Hour, AllowFailure: j.allowFailure, HasNeeds: j.dag}
		for _, n := range j.needs {
			row.Needs = append(row.Needs, Need{Job: n})
		}
		jobs = append(jobs, row)
	}
	return m, jobs
}

// fail makes a job of the model and that of a run fail, and run again if it may.
func (j *modeled) fail(of *run, row *Job) {
	j.happened = Failed
	of.become(row, Failed)
	if (Failure{}).retries(Job{Spec: &config.Job{Retry: config.Retry{Max: j.retries}}}, j.attempts) {
		of.enqueue(of.retry(row, User{}))
	}
	if j.attempts <= j.retries {
		j.happened = Pending
		j.attempts++
	}
}

// act does the same to a job of the model and to that of a run: what a runner, a user or the time can do.
func act(r *rand.Rand, m model, of *run, i int) string {
	j, row := m[i], of.jobs[i]
	switch next := []Status{Success, Failed}[r.IntN(2)]; {
	case j.happened == Pending && r.IntN(4) > 0:
		j.happened = Running
		of.become(row, Running)
	case j.happened == Pending, j.happened == Running && r.IntN(6) == 0:
		j.happened = Canceled
		of.become(row, Canceled)
	case j.happened == Running && next == Failed:
		j.fail(of, row)
	case j.happened == Running:
		j.happened = next
		of.become(row, next)
	case j.happened == Manual, j.happened == Scheduled:
		j.happened = Pending
		if _, err := of.play(row, User{}); err != nil {
			return err.Error()
		}
	case (j.happened == Success || j.happened == Failed || j.happened == Canceled) && r.IntN(3) == 0:
		j.happened = Pending
		j.attempts++
		if _, err := of.again(row, User{}); err != nil {
			return err.Error()
		}
	default:
		return ""
	}
	return fmt.Sprintf("%s is %s", j.name, j.happened)
}

func TestRun_agreesWithModel(t *testing.T) {
	const pipelines, steps = 400, 40
	seen := map[Status]int{}
	for n := range uint64(pipelines) {
		r := rand.New(rand.NewPCG(seed.Value(), n))
		m, jobs := generate(r)
		of := newRun(Pipeline{Status: Created}, jobs, time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
		var done []string
		for range steps {
			of.advance()
			m.settle()
			if got, want := shownRun(of), m.String(); got != want {
				t.Fatalf("pipeline %d, after %q:\ngot  %s\nwant %s", n, done, got, want)
			}
			seen[of.Status]++
			if r.IntN(60) == 0 {
				of.cancel()
				m.cancel()
				done = append(done, "all are canceled")
			} else if did := act(r, m, of, r.IntN(len(m))); did != "" {
				done = append(done, did)
			}
		}
	}
	for _, s := range []Status{Created, Pending, Running, Success, Failed, Canceled, Skipped, Manual, Scheduled} {
		if seen[s] == 0 && s != Created {
			t.Errorf("no pipeline was %s: %v", s, seen)
		}
	}
}

// String returns the statuses of the pipeline and its jobs.
func (m model) String() string {
	all := []string{fmt.Sprintf("pipeline=%s", m.overall())}
	for _, j := range m {
		all = append(all, fmt.Sprintf("%s=%s", j.name, m.status(j)))
	}
	return strings.Join(all, " ")
}

// shownRun is String for a run.
func shownRun(r *run) string {
	all := []string{fmt.Sprintf("pipeline=%s", r.Status)}
	for _, j := range r.jobs {
		all = append(all, fmt.Sprintf("%s=%s", j.Name, j.Status))
	}
	return strings.Join(all, " ")
}
