package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/test/patience"
)

var (
	noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	web  = database.Subject{Kind: database.KindProject, ID: 20, UID: "web"}
	dora = database.User{ID: 3, UID: "dora"}
	mary = database.User{ID: 2, UID: "mary"}
)

// site is the pipelines in a database.
type site struct {
	*WithT
	t *testing.T
	*pipeline.Store
	db    *database.DB
	clock *clocktesting.FakePassiveClock
}

func onEachEngine(t *testing.T, test func(s site)) {
	t.Helper()
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		c := clocktesting.NewFakePassiveClock(noon)
		db := databasetest.Open(t, name, iid.Migrations(), job.Migrations(), pipeline.Migrations())
		test(site{NewWithT(t), t, pipeline.New(db, c), db, c})
	})
}

// create creates a pipeline of dora with jobs that follow each other in the stages of their indexes.
func (s site) create(p pipeline.Pipeline, jobs ...*pipeline.Job) pipeline.Pipeline {
	s.t.Helper()
	p.In, p.User = web, dora
	for _, j := range jobs {
		j.Needs, j.Tags = append([]pipeline.Need{}, j.Needs...), append([]string{}, j.Tags...)
		if j.Spec == nil {
			j.Spec = &config.Job{}
		}
	}
	s.Expect(s.Create(s.t.Context(), &p, jobs, nil)).To(Succeed())
	p, err := s.Advance(s.t.Context(), p.ID)
	s.Expect(err).NotTo(HaveOccurred())
	return p
}

// jobs returns the jobs of a pipeline that were not retried, in their order.
func (s site) jobs(p pipeline.Pipeline) []pipeline.Job {
	s.t.Helper()
	all, err := s.ListJobs(s.t.Context(), pipeline.JobQuery{Project: web.UID, Pipeline: p.ID}, 0, 100)
	s.Expect(err).NotTo(HaveOccurred())
	slices.SortFunc(all, func(a, b pipeline.Job) int { return a.Position - b.Position })
	return all
}

// statuses returns the status of a pipeline and those of its jobs.
func (s site) statuses(p pipeline.Pipeline) (all []pipeline.Status) {
	s.t.Helper()
	now, err := s.Get(s.t.Context(), web.UID, p.ID)
	s.Expect(err).NotTo(HaveOccurred())
	all = append(all, now.Status)
	for _, j := range s.jobs(p) {
		all = append(all, j.Status)
	}
	return all
}

// run makes a job run and end a minute later.
func (s site) run(p pipeline.Pipeline, i int, result pipeline.Status) {
	s.t.Helper()
	j, err := s.Take(s.t.Context(), s.jobs(p)[i], 1, pipeline.NewToken())
	s.Expect(err).NotTo(HaveOccurred())
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	if result == pipeline.Success {
		_, err = s.Succeed(s.t.Context(), j)
	} else {
		_, err = s.Store.Fail(s.t.Context(), j, pipeline.Failure{Reason: "script_failure"})
	}
	s.Expect(err).NotTo(HaveOccurred())
}

func when(name string, stage int, when string) *pipeline.Job {
	return &pipeline.Job{Name: name, Stage: name, StageIndex: stage, When: when}
}

func TestStore_runsJobsInOrder(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := pipeline.Pipeline{Name: "Nightly", Ref: "main", SHA: "1", Before: "0", Source: "push", OnNewCommit: "none"}
		build := when("build", 0, "on_success")
		build.Tags, build.Spec, build.AllowFailure = []string{"linux"}, &config.Job{Name: "build", Script: []string{"make"}}, false
		test := when("test", 1, "on_success")
		test.HasNeeds, test.Needs = true, []pipeline.Need{{Job: "build", Artifacts: true}}
		p = s.create(p, build, test, when("mend", 1, "on_failure"), when("deploy", 2, "manual"))
		s.Expect(p).To(And(HaveField("IID", BeEquivalentTo(1)), HaveField("Status", pipeline.Pending), HaveField("Name", "Nightly"), HaveField("User", dora)))
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Pending, pipeline.Pending, pipeline.Created, pipeline.Created, pipeline.Created))
		read, err := s.WithSpec(s.t.Context(), web.UID, s.jobs(p)[0].ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(read).To(And(HaveField("Spec", build.Spec), HaveField("Tags", build.Tags), HaveField("User", dora), HaveField("HasNeeds", false)))
		s.Expect(s.jobs(p)[1].Needs).To(Equal(test.Needs))

		s.run(p, 0, pipeline.Success)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Running, pipeline.Success, pipeline.Pending, pipeline.Skipped, pipeline.Created))
		s.run(p, 1, pipeline.Success)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Manual, pipeline.Success, pipeline.Success, pipeline.Skipped, pipeline.Manual))
		played, err := s.Play(s.t.Context(), s.jobs(p)[3], mary, []pipeline.Variable{{Key: "A", Value: "b", Type: pipeline.EnvVar}})
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(played).To(And(HaveField("Status", pipeline.Pending), HaveField("User", mary)))
		s.run(p, 3, pipeline.Success)
		p, err = s.Get(s.t.Context(), web.UID, p.ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(p.Status).To(Equal(pipeline.Success))
		s.Expect([]time.Time{p.Started.UTC(), p.Finished.UTC(), p.Updated.UTC()}).To(Equal([]time.Time{noon, noon.Add(3 * time.Minute), noon.Add(3 * time.Minute)}))
		s.Expect(s.Summarize(s.t.Context(), p.ID)).To(Equal(pipeline.Summary{Duration: 3 * time.Minute}))
	})
}

func TestTake_givesJobToOneRunner(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"), when("b", 0, "on_success"))
		_, err := s.Succeed(s.t.Context(), s.jobs(p)[0])
		s.Expect(err).To(MatchError(pipeline.ErrTransition), "it was not running")
		// Several runners ask at once, also when the pipeline runs.
		for _, j := range s.jobs(p) {
			results := make([]error, 5)
			var group sync.WaitGroup
			for i := range results {
				group.Go(func() { _, results[i] = s.Take(s.t.Context(), j, int64(i), pipeline.NewToken()) })
			}
			group.Wait()
			refused := slices.DeleteFunc(results, func(err error) bool { return err == nil })
			s.Expect(refused).To(And(HaveLen(4), HaveEach(MatchError(pipeline.ErrTransition))))
		}
	})
}

func TestCancel_endsJobsThatHaveNotEnded(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"), when("b", 0, "on_success"), when("c", 0, "manual"), when("d", 1, "always"))
		s.run(p, 0, pipeline.Failed)
		got, err := s.Cancel(s.t.Context(), p.ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(got.Status).To(Equal(pipeline.Manual))
		s.Expect(s.statuses(p)[1:]).To(HaveExactElements(pipeline.Failed, pipeline.Canceled, pipeline.Manual, pipeline.Canceled))
		s.Expect(s.jobs(p)[0].FailureReason).To(Equal("script_failure"))
	})
}

func TestRetry_replacesJobsThatFailed(t *testing.T) {
	onEachEngine(t, func(s site) {
		build := when("a", 0, "on_success")
		build.Spec = &config.Job{Script: []string{"make"}}
		p := s.create(pipeline.Pipeline{}, build, when("b", 1, "on_success"))
		s.run(p, 0, pipeline.Failed)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Failed, pipeline.Failed, pipeline.Skipped))
		former := s.jobs(p)[0]
		_, err := s.Retry(s.t.Context(), p.ID, mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Pending, pipeline.Pending, pipeline.Created))
		now, err := s.WithSpec(s.t.Context(), web.UID, s.jobs(p)[0].ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(now).To(And(HaveField("ID", Not(Equal(former.ID))), HaveField("Spec", build.Spec), HaveField("User", mary), HaveField("FailureReason", "")))
		all, err := s.ListJobs(s.t.Context(), pipeline.JobQuery{Project: web.UID, Pipeline: p.ID, Retried: true}, 0, 100)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(all).To(HaveLen(3))
		_, err = s.RetryJob(s.t.Context(), former, mary)
		s.Expect(err).To(MatchError(pipeline.ErrNotRetryable), "it was retried before")
		_, err = s.RetryJob(s.t.Context(), now, mary)
		s.Expect(err).To(MatchError(pipeline.ErrNotRetryable), "it has not run")

		s.run(p, 0, pipeline.Success)
		again, err := s.RetryJob(s.t.Context(), s.jobs(p)[0], dora)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(again.Status).To(Equal(pipeline.Pending))
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Pending, pipeline.Pending, pipeline.Pending))
	})
}

func TestOnJobFailure_cancelsAllJobs(t *testing.T) {
	onEachEngine(t, func(s site) {
		lenient := when("c", 0, "on_success")
		lenient.AllowFailure = true
		p := s.create(pipeline.Pipeline{OnJobFailure: "all"}, when("a", 0, "on_success"), when("b", 0, "on_success"), lenient)
		s.run(p, 2, pipeline.Failed)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Pending, pipeline.Pending, pipeline.Pending, pipeline.Failed))
		s.Expect(s.Summarize(s.t.Context(), p.ID)).To(HaveField("Warnings", true))
		s.run(p, 0, pipeline.Failed)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Failed, pipeline.Failed, pipeline.Canceled, pipeline.Failed))
	})
}

func TestBridge_waitsForItsTask(t *testing.T) {
	onEachEngine(t, func(s site) {
		bridge := when("trigger", 0, "on_success")
		bridge.Bridge = true
		p := s.create(pipeline.Pipeline{}, bridge)
		s.Expect(p.Status).To(Equal(pipeline.Pending))
		s.Expect(s.Pending(s.t.Context(), nil, 0, 10)).To(BeEmpty(), "no runner gets it")
		tasks := job.NewQueue(s.db, job.QueueOptions{Name: pipeline.BridgeQueue})
		waits := func(id int64) bool {
			state, err := tasks.Look(s.t.Context(), fmt.Sprint(id))
			s.Expect(err).NotTo(HaveOccurred())
			return state.Phase != job.Idle
		}
		s.Expect(waits(bridge.ID)).To(BeTrue())
		s.Expect(tasks.Forget(s.t.Context(), fmt.Sprint(bridge.ID))).To(Succeed())
		j, err := s.Bridge(s.t.Context(), bridge.ID)
		s.Expect(err).NotTo(HaveOccurred())
		j, err = s.Begin(s.t.Context(), j)
		s.Expect(err).NotTo(HaveOccurred())

		below := s.create(pipeline.Pipeline{UpstreamJob: j.ID, Root: p.ID, Source: "parent_pipeline"}, when("build", 0, "on_success"))
		s.Expect(s.Downstream(s.t.Context(), j.ID)).To(HaveKeyWithValue(j.ID, HaveField("ID", below.ID)))
		s.Expect(s.RootOf(s.t.Context(), s.jobs(below)[0].ID)).To(Equal(p.ID))
		s.Expect(s.RootOf(s.t.Context(), j.ID)).To(Equal(p.ID))
		s.Expect(waits(j.ID)).To(BeFalse())
		s.run(below, 0, pipeline.Success)
		s.Expect(waits(j.ID)).To(BeTrue(), "the pipeline below has ended")
		_, err = s.Succeed(s.t.Context(), j)
		s.Expect(err).NotTo(HaveOccurred())
		p, err = s.Get(s.t.Context(), web.UID, p.ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(p.Status).To(Equal(pipeline.Success))
	})
}

func TestCancel_alsoCancelsChildPipelines(t *testing.T) {
	onEachEngine(t, func(s site) {
		trigger := func() *pipeline.Job {
			j := when("trigger", 0, "on_success")
			j.Bridge = true
			return j
		}
		above, middle := trigger(), trigger()
		p := s.create(pipeline.Pipeline{}, above)
		_, err := s.Begin(s.t.Context(), *above)
		s.Expect(err).NotTo(HaveOccurred())
		child := s.create(pipeline.Pipeline{UpstreamJob: above.ID, Root: p.ID}, middle)
		_, err = s.Begin(s.t.Context(), *middle)
		s.Expect(err).NotTo(HaveOccurred())
		_, err = s.Succeed(s.t.Context(), *middle)
		s.Expect(err).NotTo(HaveOccurred(), "it does not wait for its own child")
		lowest := s.create(pipeline.Pipeline{UpstreamJob: middle.ID, Root: p.ID}, when("build", 0, "on_success"))
		other := s.create(pipeline.Pipeline{}, when("build", 0, "on_success"))

		canceled, err := s.Cancel(s.t.Context(), p.ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(canceled.Status).To(Equal(pipeline.Canceled))
		s.Expect(s.statuses(child)).To(HaveExactElements(pipeline.Success))
		s.Expect(s.statuses(lowest)).To(HaveExactElements(pipeline.Canceled, pipeline.Canceled))
		s.Expect(s.statuses(other)).To(HaveEach(pipeline.Pending))
	})
}

func TestDelayedJob_startsInTime(t *testing.T) {
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		db := databasetest.Open(t, name, iid.Migrations(), job.Migrations(), pipeline.Migrations())
		s := site{NewWithT(t), t, pipeline.New(db, clock.RealClock{}), db, nil}
		later, much := when("a", 0, "delayed"), when("b", 0, "delayed")
		later.StartIn, much.StartIn = 50*time.Millisecond, time.Hour
		p := s.create(pipeline.Pipeline{}, later, much)
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Scheduled, pipeline.Scheduled, pipeline.Scheduled))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		q := job.NewQueue(db, job.QueueOptions{Name: pipeline.QueueName, Run: s.Run, Poll: 10 * time.Millisecond})
		go func() { ended <- q.Start(ctx) }()
		s.Eventually(func() []pipeline.Status { return s.statuses(p) }).WithTimeout(patience.Wait).
			Should(HaveExactElements(pipeline.Running, pipeline.Pending, pipeline.Scheduled))
		stop()
		s.Expect(<-ended).To(Succeed())
	})
}

func TestCreate_makesOnePipelineForAnOrigin(t *testing.T) {
	onEachEngine(t, func(s site) {
		s.create(pipeline.Pipeline{Origin: "push"})
		again := pipeline.Pipeline{In: web, Origin: "push"}
		s.Expect(s.Create(s.t.Context(), &again, nil, nil)).To(MatchError(pipeline.ErrExists))
		s.Expect(s.create(pipeline.Pipeline{}).IID).To(BeEquivalentTo(2), "the other one has taken no number")
		s.Expect(s.create(pipeline.Pipeline{}).IID).To(BeEquivalentTo(3))
	})
}

func TestCreate_keepsFailureOfConfiguration(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := pipeline.Pipeline{In: web, Status: pipeline.Failed, Errors: "oh"}
		s.Expect(s.Create(s.t.Context(), &p, nil, []pipeline.Variable{{Key: "B", Value: "2", Type: pipeline.File}, {Key: "A", Value: "1", Type: pipeline.EnvVar}})).To(Succeed())
		s.Expect(s.Advance(s.t.Context(), p.ID)).To(And(HaveField("Status", pipeline.Failed), HaveField("Errors", "oh"), HaveField("Finished", Not(BeZero()))))
		s.Expect(s.Variables(s.t.Context(), p.ID)).To(HaveExactElements(
			And(HaveField("Key", "A"), HaveField("Value", "1"), HaveField("Type", pipeline.EnvVar)), And(HaveField("Key", "B"), HaveField("Type", pipeline.File))))
	})
}

func TestErase_needsJobThatHasRun(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"))
		_, err := s.Erase(s.t.Context(), s.jobs(p)[0], mary)
		s.Expect(err).To(MatchError(pipeline.ErrNotErasable))
		s.run(p, 0, pipeline.Success)
		_, err = s.Erase(s.t.Context(), s.jobs(p)[0], mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.jobs(p)[0]).To(And(HaveField("Eraser", mary), HaveField("Erased", BeTemporally("==", noon.Add(time.Minute)))))
		_, err = s.Erase(s.t.Context(), s.jobs(p)[0], mary)
		s.Expect(err).To(MatchError(pipeline.ErrNotErasable))
		_, err = s.Play(s.t.Context(), s.jobs(p)[0], mary, nil)
		s.Expect(err).To(MatchError(pipeline.ErrNotPlayable))
	})
}

func TestDelete_removesJobs(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"))
		id := s.jobs(p)[0].ID
		s.Expect(s.Delete(s.t.Context(), p.ID)).To(Succeed())
		_, err := s.GetJob(s.t.Context(), web.UID, id)
		s.Expect(err).To(MatchError(pipeline.ErrNotFound))
		s.Expect(s.Delete(s.t.Context(), p.ID)).To(MatchError(pipeline.ErrNotFound))
		_, err = s.Advance(s.t.Context(), p.ID)
		s.Expect(err).To(MatchError(pipeline.ErrNotFound))
	})
}

func TestList_filtersAndSorts(t *testing.T) {
	onEachEngine(t, func(s site) {
		first := s.create(pipeline.Pipeline{Ref: "main", SHA: "1", Source: "push", Name: "One", Status: pipeline.Failed, Errors: "oh"})
		s.clock.SetTime(noon.Add(time.Hour))
		second := s.create(pipeline.Pipeline{Ref: "main", SHA: "2", Source: "api", Status: pipeline.Skipped})
		third := s.create(pipeline.Pipeline{Ref: "v1", Tag: true, SHA: "1", Source: "api"}, when("a", 0, "on_success"))
		s.Expect(s.Create(s.t.Context(), &pipeline.Pipeline{In: database.Subject{Kind: database.KindProject, ID: 21, UID: "app"}, Ref: "main"}, nil, nil)).To(Succeed())
		for name, test := range map[string]struct {
			q    pipeline.Query
			want []pipeline.Pipeline
		}{
			"all":       {pipeline.Query{}, []pipeline.Pipeline{third, second, first}},
			"ascending": {pipeline.Query{Ascending: true}, []pipeline.Pipeline{first, second, third}},
			"by ref":    {pipeline.Query{Order: pipeline.ByRef}, []pipeline.Pipeline{third, second, first}},
			"by status": {pipeline.Query{Order: pipeline.ByStatus, Ascending: true}, []pipeline.Pipeline{first, third, second}},
			"status":    {pipeline.Query{Conditions: []pipeline.Condition{pipeline.In(pipeline.Skipped, pipeline.Failed)}}, []pipeline.Pipeline{second, first}},
			"ref":       {pipeline.Query{Conditions: []pipeline.Condition{pipeline.Of("main")}}, []pipeline.Pipeline{second, first}},
			"commit":    {pipeline.Query{Conditions: []pipeline.Condition{pipeline.At("1"), pipeline.Tagged(false)}}, []pipeline.Pipeline{first}},
			"source":    {pipeline.Query{Conditions: []pipeline.Condition{pipeline.From("api"), pipeline.By("dora")}}, []pipeline.Pipeline{third, second}},
			"user":      {pipeline.Query{Conditions: []pipeline.Condition{pipeline.By("mary")}}, nil},
			"name":      {pipeline.Query{Conditions: []pipeline.Condition{pipeline.Named("One"), pipeline.Invalid()}}, []pipeline.Pipeline{first}},
			"branches":  {pipeline.Query{Conditions: []pipeline.Condition{pipeline.Newest("web", false)}}, []pipeline.Pipeline{second}},
			"tags":      {pipeline.Query{Conditions: []pipeline.Condition{pipeline.Newest("web", true)}}, []pipeline.Pipeline{third}},
			"since":     {pipeline.Query{Conditions: []pipeline.Condition{pipeline.CreatedAt.Since(noon.Add(time.Minute))}}, []pipeline.Pipeline{third, second}},
		} {
			test.q.Project = web.UID
			if test.q.Order == "" {
				test.q.Order = pipeline.ByID
			}
			got, err := s.List(s.t.Context(), test.q, 0, 10)
			s.Expect(err).NotTo(HaveOccurred(), name)
			s.Expect(idsOf(got)).To(Equal(idsOf(test.want)), name)
			s.Expect(s.Count(s.t.Context(), test.q, 10)).To(Equal(len(test.want)), name)
		}
		all := pipeline.Query{Project: web.UID, Order: pipeline.ByID}
		s.Expect(s.List(s.t.Context(), all, 1, 1)).To(ConsistOf(HaveField("ID", second.ID)))
		s.Expect(s.Count(s.t.Context(), all, 2)).To(Equal(2), "it stops counting")
	})
}

func idsOf(all []pipeline.Pipeline) (ids []int64) {
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestCount_isRememberedForAVersion(t *testing.T) {
	onEachEngine(t, func(s site) {
		count := func(version string) (pipelines, jobs int) {
			s.t.Helper()
			pipelines, err := s.Count(s.t.Context(), pipeline.Query{Project: web.UID, Version: version}, 10)
			s.Expect(err).NotTo(HaveOccurred())
			jobs, err = s.CountJobs(s.t.Context(), pipeline.JobQuery{Project: web.UID, Version: version}, 10)
			s.Expect(err).NotTo(HaveOccurred())
			return pipelines, jobs
		}
		s.create(pipeline.Pipeline{}, when("a", 0, "on_success"), when("b", 0, "on_success"))
		expect := func(version string, pipelines, jobs int) {
			s.t.Helper()
			p, j := count(version)
			s.Expect([]int{p, j}).To(Equal([]int{pipelines, jobs}), version)
		}
		expect("1", 1, 2)
		expect("", 1, 2)
		s.create(pipeline.Pipeline{}, when("a", 0, "on_success"))
		expect("1", 1, 2)
		expect("", 2, 3)
		expect("2", 2, 3)
	})
}

func TestListJobs_filters(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"), when("b", 1, "on_success"))
		other := s.create(pipeline.Pipeline{}, when("a", 0, "manual"))
		all := append(s.jobs(p), s.jobs(other)...)
		for name, test := range map[string]struct {
			q    pipeline.JobQuery
			want []int64
		}{
			"all":      {pipeline.JobQuery{}, []int64{all[2].ID, all[1].ID, all[0].ID}},
			"pipeline": {pipeline.JobQuery{Pipeline: p.ID}, []int64{all[1].ID, all[0].ID}},
			"statuses": {pipeline.JobQuery{Statuses: []pipeline.Status{pipeline.Manual, pipeline.Pending}}, []int64{all[2].ID, all[0].ID}},
			"before":   {pipeline.JobQuery{Before: all[1].ID}, []int64{all[0].ID}},
			"bridges":  {pipeline.JobQuery{Bridges: true}, nil},
		} {
			test.q.Project = web.UID
			got, err := s.ListJobs(s.t.Context(), test.q, 0, 10)
			s.Expect(err).NotTo(HaveOccurred(), name)
			var ids []int64
			for _, j := range got {
				ids = append(ids, j.ID)
			}
			s.Expect(ids).To(Equal(test.want), name)
			s.Expect(s.CountJobs(s.t.Context(), test.q, 10)).To(Equal(len(test.want)), name)
		}
		s.Expect(s.OfJobs(s.t.Context(), web.UID, all...)).To(And(HaveLen(2), HaveKeyWithValue(other.ID, HaveField("IID", BeEquivalentTo(2)))))
	})
}

func TestSubjects_areSweptWithTheirJobs(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"))
		heir := database.Subject{Kind: database.KindProject, ID: 21, UID: "heir"}
		s.Expect(s.JobSubjects().Move(s.t.Context(), web, heir)).To(Succeed())
		s.Expect(s.Subjects().Move(s.t.Context(), web, heir)).To(Succeed())
		s.Expect(s.Get(s.t.Context(), heir.UID, p.ID)).To(HaveField("In", heir))
		s.Expect(s.ListJobs(s.t.Context(), pipeline.JobQuery{Project: heir.UID}, 0, 10)).To(HaveLen(1))
		s.Expect(s.JobSubjects().Remove(s.t.Context(), heir)).To(Succeed())
		s.Expect(s.Subjects().Remove(s.t.Context(), heir)).To(Succeed())
		s.Expect(s.db.Read(s.t.Context(), "counting", func(ctx context.Context, db bun.IDB) error {
			for _, table := range []string{"pipelines", "pipeline_jobs"} {
				n, err := db.NewSelect().Table(table).Count(ctx)
				s.Expect(n).To(BeZero(), table)
				if err != nil {
					return err
				}
			}
			return nil
		})).To(Succeed())
	})
}
