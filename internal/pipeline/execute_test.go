package pipeline_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// take gives a job of a pipeline to runner 7, and returns it with its token.
func (s site) take(p pipeline.Pipeline, i int) (j pipeline.Job, token string) {
	s.t.Helper()
	token = pipeline.NewToken()
	j, err := s.Take(s.t.Context(), s.jobs(p)[i], 7, token)
	s.Expect(err).NotTo(HaveOccurred())
	return j, token
}

func TestTake_makesJobKnownByItsToken(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{Protected: true}, when("a", 0, "on_success"), when("b", 0, "on_success"))
		s.Expect(s.Pending(t.Context(), nil, 0, 10)).To(HaveLen(2))
		s.Expect(s.Pending(t.Context(), []types.UID{"other"}, 0, 10)).To(BeEmpty())
		before, err := s.Queue(t.Context())
		s.Expect(err).NotTo(HaveOccurred())
		j, token := s.take(p, 0)
		s.Expect(s.Queue(t.Context())).NotTo(Equal(before))
		s.Expect(s.Pending(t.Context(), []types.UID{web.UID}, 0, 10)).To(HaveExactElements(HaveField("Name", "b")))
		s.Expect(s.Running(t.Context(), []types.UID{web.UID, "other"})).To(Equal(map[types.UID]int{web.UID: 1}))
		found, err := s.ByDigest(t.Context(), credential.Digest(token))
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(found).To(And(HaveField("ID", j.ID), HaveField("RunnerID", BeEquivalentTo(7)), HaveField("Status", pipeline.Running)))
		s.Expect(s.ByDigest(t.Context(), "unknown")).Error().To(MatchError(pipeline.ErrNotFound))
		s.Expect(s.Get(t.Context(), web.UID, p.ID)).To(HaveField("Protected", true))
		s.Expect(s.RetryJob(t.Context(), j, mary)).Error().To(MatchError(pipeline.ErrNotRetryable))
		_, err = s.Succeed(t.Context(), j)
		s.Expect(err).NotTo(HaveOccurred())
		again, err := s.RetryJob(t.Context(), j, mary)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(again).To(And(HaveField("RunnerID", BeZero()), HaveField("TokenDigest", "")))
		s.Expect(s.ByDigest(t.Context(), credential.Digest(token))).To(HaveField("Retried", true), "its runner learns how it ended")
	})
}

func TestTake_startsJobsOfARunningPipeline(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("a", 0, "on_success"), when("b", 0, "on_success"), when("c", 0, "on_success"), when("d", 1, "on_success"))
		_, err := s.Take(s.t.Context(), s.jobs(p)[0], 1, pipeline.NewToken())
		s.Expect(err).NotTo(HaveOccurred())
		before, err := s.Get(s.t.Context(), web.UID, p.ID)
		s.Expect(err).NotTo(HaveOccurred())
		s.clock.SetTime(noon.Add(time.Minute))
		pending, token := s.jobs(p)[1], pipeline.NewToken()
		taken, err := s.Take(s.t.Context(), pending, 7, token)
		s.Expect(err).NotTo(HaveOccurred())
		is := And(HaveField("ID", pending.ID), HaveField("Status", pipeline.Running), HaveField("RunnerID", BeEquivalentTo(7)),
			HaveField("Started.UTC()", noon.Add(time.Minute)), HaveField("Contacted.UTC()", noon.Add(time.Minute)), HaveField("Queued.UTC()", noon))
		s.Expect(taken).To(is)
		s.Expect(s.ByDigest(s.t.Context(), credential.Digest(token))).To(is)
		s.Expect(s.Get(s.t.Context(), web.UID, p.ID)).To(Equal(before))

		last := s.jobs(p)[2]
		_, err = s.CancelJob(s.t.Context(), last)
		s.Expect(err).NotTo(HaveOccurred())
		_, err = s.Take(s.t.Context(), last, 7, pipeline.NewToken())
		s.Expect(err).To(MatchError(pipeline.ErrTransition))
		s.Expect(s.statuses(p)).To(HaveExactElements(pipeline.Running, pipeline.Running, pipeline.Running, pipeline.Canceled, pipeline.Created))
	})
}

func TestFail_retriesAsKeywordsDemand(t *testing.T) {
	code := func(c int) *int { return &c }
	for name, tt := range map[string]struct {
		spec    config.Job
		failure pipeline.Failure
		want    []pipeline.Status
	}{
		"no retry":              {config.Job{}, pipeline.Failure{Reason: "script_failure"}, []pipeline.Status{pipeline.Failed, pipeline.Failed}},
		"one":                   {config.Job{Retry: config.Retry{Max: 1}}, pipeline.Failure{Reason: "script_failure"}, []pipeline.Status{pipeline.Pending, pipeline.Pending}},
		"for the reason":        {config.Job{Retry: config.Retry{Max: 1, When: []string{"script_failure"}}}, pipeline.Failure{Reason: "script_failure"}, []pipeline.Status{pipeline.Pending, pipeline.Pending}},
		"for another reason":    {config.Job{Retry: config.Retry{Max: 1, When: []string{"api_failure"}}}, pipeline.Failure{Reason: "script_failure"}, []pipeline.Status{pipeline.Failed, pipeline.Failed}},
		"for the exit code":     {config.Job{Retry: config.Retry{Max: 1, ExitCodes: []int{3}}}, pipeline.Failure{ExitCode: code(3)}, []pipeline.Status{pipeline.Pending, pipeline.Pending}},
		"for another exit code": {config.Job{Retry: config.Retry{Max: 1, ExitCodes: []int{3}}}, pipeline.Failure{ExitCode: code(4)}, []pipeline.Status{pipeline.Failed, pipeline.Failed}},
		"an allowed exit code":  {config.Job{AllowFailure: config.AllowFailure{ExitCodes: []int{3}}}, pipeline.Failure{ExitCode: code(3)}, []pipeline.Status{pipeline.Success, pipeline.Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(s site) {
				a := when("a", 0, "on_success")
				a.Spec = &tt.spec
				p := s.create(pipeline.Pipeline{}, a)
				j, _ := s.take(p, 0)
				_, err := s.Store.Fail(s.t.Context(), j, tt.failure)
				s.Expect(err).NotTo(HaveOccurred())
				s.Expect(s.statuses(p)).To(Equal(tt.want))
				s.Expect(s.Store.Fail(s.t.Context(), j, tt.failure)).Error().To(Or(MatchError(pipeline.ErrTransition), MatchError(pipeline.ErrNotRetryable)))
				if tt.want[0] == pipeline.Pending {
					j, _ = s.take(p, 0)
					_, err := s.Store.Fail(s.t.Context(), j, tt.failure)
					s.Expect(err).NotTo(HaveOccurred())
					s.Expect(s.statuses(p)).To(Equal([]pipeline.Status{pipeline.Failed, pipeline.Failed}), "once is enough")
				}
			})
		})
	}
}

func TestFailAbandoned_endsJobsWithoutRunner(t *testing.T) {
	onEachEngine(t, func(s site) {
		p := s.create(pipeline.Pipeline{}, when("dead", 0, "on_success"), when("alive", 0, "on_success"), when("waiting", 0, "on_success"))
		s.take(p, 0)
		alive, _ := s.take(p, 1)
		s.clock.SetTime(noon.Add(9 * time.Minute))
		s.Expect(s.FailAbandoned(s.t.Context())).To(BeZero())
		s.Expect(s.Contact(s.t.Context(), alive.ID)).To(Succeed())
		s.clock.SetTime(noon.Add(11 * time.Minute))
		s.Expect(s.FailAbandoned(s.t.Context())).To(Equal(1))
		s.Expect(s.jobs(p)[0]).To(And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", "runner_system_failure")))
		s.clock.SetTime(noon.Add(25 * time.Hour))
		s.Expect(s.Contact(s.t.Context(), alive.ID)).To(Succeed())
		s.Expect(s.FailAbandoned(s.t.Context())).To(Equal(1))
		s.Expect(s.jobs(p)[2]).To(And(HaveField("Status", pipeline.Failed), HaveField("FailureReason", "stuck_or_timeout_failure")))
		s.Expect(s.jobs(p)[1].Status).To(Equal(pipeline.Running))
	})
}

func TestLog_growsAtItsEnd(t *testing.T) {
	onEachEngine(t, func(s site) {
		j, _ := s.take(s.create(pipeline.Pipeline{}, when("a", 0, "on_success")), 0)
		add := func(at int64, text string, want int64) {
			t.Helper()
			size, err := s.AppendLog(s.t.Context(), j.ID, at, []byte(text))
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(size).To(Equal(want))
		}
		s.Expect(s.LogSize(s.t.Context(), j.ID)).To(BeZero())
		s.Expect(s.ReadLog(s.t.Context(), j.ID, 0)).To(BeEmpty())
		add(0, "one ", 4)
		add(4, "", 4)
		add(4, "two", 7)
		for _, at := range []int64{0, 4, 8} {
			size, err := s.AppendLog(s.t.Context(), j.ID, at, []byte("x"))
			s.Expect(err).To(MatchError(pipeline.ErrLogPosition))
			s.Expect(size).To(BeEquivalentTo(7))
		}
		for from, want := range map[int64]string{0: "one two", 3: " two", 4: "two", 6: "o", 7: ""} {
			piece, err := s.ReadLog(s.t.Context(), j.ID, from)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(string(piece)).To(Equal(want), "from %d", from)
		}
		large := strings.Repeat("x", 12<<20)
		add(7, large, 7+12<<20)
		add(7+12<<20, large, 7+24<<20)
		_, err := s.AppendLog(s.t.Context(), j.ID, 7+24<<20, []byte(large))
		s.Expect(err).To(MatchError(pipeline.ErrLogSize))
		_, err = s.AppendLog(s.t.Context(), 999, 0, []byte("x"))
		s.Expect(err).To(MatchError(pipeline.ErrNotFound))
	})
}
