package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
)

// running starts a pool in the test's bubble. stop stops it and waits for it.
func running(t *testing.T, o job.Options) (p *job.Pool[string], stop func()) {
	t.Helper()
	if o.Clock = (clock.RealClock{}); o.Limits == (fair.Limits{}) {
		o.Limits = fair.Limits{Total: 2}
	}
	p = job.New[string](o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	synctest.Wait()
	return p, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// held is a set of jobs that run until they are released or forgotten.
type held struct {
	began []string
	end   chan error
}

func newHeld() *held { return &held{end: make(chan error)} }

func (h *held) job(name, tenant, place string) job.Job {
	return job.Job{Tenant: fair.Namespace(tenant), Place: place, Run: func(ctx context.Context, _ func(string)) error {
		h.began = append(h.began, name)
		select {
		case err := <-h.end:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
}

// inBubble runs a test in a bubble, with a pool that stops when the test ends.
func inBubble(t *testing.T, o job.Options, test func(t *testing.T, g Gomega, p *job.Pool[string], h *held)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, stop := running(t, o)
		defer stop()
		test(t, NewWithT(t), p, newHeld())
	})
}

func phase(p *job.Pool[string], key string) job.Phase { return p.Look(key).Phase }

func TestPool_runsOneJobPerKey(t *testing.T) {
	inBubble(t, job.Options{}, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		_, begun := p.Begin("a", h.job("first", "acme", ""))
		g.Expect(begun).To(BeTrue())
		synctest.Wait()
		s, begun := p.Begin("a", h.job("second", "acme", ""))
		g.Expect(begun).To(BeFalse())
		g.Expect(s.Phase).To(Equal(job.Running))
		h.end <- nil
		synctest.Wait()
		g.Expect(p.Look("a")).To(BeZero(), "nothing is kept of what succeeded")
		_, begun = p.Begin("a", h.job("third", "acme", ""))
		g.Expect(begun).To(BeTrue())
		synctest.Wait()
		g.Expect(h.began).To(Equal([]string{"first", "third"}))
	})
}

func TestPool_limitsJobsPerTenantAndPlace(t *testing.T) {
	o := job.Options{Limits: fair.Limits{Total: 4, Share: 3}, PerPlace: fair.Limits{Total: 2, Share: 1}}
	inBubble(t, o, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		for i, where := range []string{"x", "x", "y", "", ""} {
			p.Begin(fmt.Sprint("a", i), h.job(fmt.Sprint("a", i), "acme", where))
		}
		synctest.Wait()
		g.Expect(h.began).To(ConsistOf("a0", "a2", "a3"), "one at x, and three of the tenant")
		p.Begin("b0", h.job("b0", "beta", "x"))
		p.Begin("b1", h.job("b1", "beta", "y"))
		synctest.Wait()
		g.Expect(h.began[3:]).To(Equal([]string{"b0"}), "four in all")
		p.Forget("a0")
		synctest.Wait()
		g.Expect(h.began[4:]).To(Equal([]string{"b1"}), "who holds less goes ahead")
		p.Forget("b0")
		synctest.Wait()
		g.Expect(h.began[5:]).To(Equal([]string{"a1"}), "the place is free again")
	})
}

func TestPool_retriesWhenRetryIsDue(t *testing.T) {
	failure := errors.New("failure")
	retry := func(failed int, err error) time.Duration {
		if !errors.Is(err, failure) {
			return time.Hour
		}
		return time.Duration(failed+1) * time.Minute
	}
	inBubble(t, job.Options{Retry: retry}, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		for attempt := range 3 {
			_, begun := p.Begin("a", h.job("a", "acme", ""))
			g.Expect(begun).To(BeTrue())
			h.end <- failure
			synctest.Wait()
			s, begun := p.Begin("a", h.job("a", "acme", ""))
			g.Expect(begun).To(BeFalse())
			g.Expect(s).To(And(HaveField("Phase", job.Done), HaveField("Err", failure), HaveField("Retry", time.Duration(attempt+1)*time.Minute)))
			<-time.After(s.Retry)
		}
		p.Begin("a", h.job("a", "acme", ""))
		h.end <- nil
		synctest.Wait()
		p.Begin("a", h.job("a", "acme", ""))
		h.end <- failure
		synctest.Wait()
		g.Expect(p.Look("a").Retry).To(Equal(time.Minute), "a success begins the count anew")
		g.Expect(p.Forget("a")).To(BeTrue())
		g.Expect(phase(p, "a")).To(Equal(job.Idle))
	})
}

func TestPool_hastensNextAttempt(t *testing.T) {
	retry := func(int, error) time.Duration { return time.Hour }
	inBubble(t, job.Options{Retry: retry}, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		p.Begin("a", h.job("a", "acme", ""))
		p.Hasten("a")
		p.Hasten("of nothing")
		g.Expect(phase(p, "a")).To(Equal(job.Running), "a running job is not changed")
		h.end <- errors.New("failure")
		synctest.Wait()
		_, begun := p.Begin("a", h.job("a", "acme", ""))
		g.Expect(begun).To(BeFalse())
		p.Hasten("a")
		_, begun = p.Begin("a", h.job("a", "acme", ""))
		g.Expect(begun).To(BeTrue())
		h.end <- nil
		synctest.Wait()
	})
}

func TestPool_reportsOutcomeOnce(t *testing.T) {
	inBubble(t, job.Options{Tell: true}, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		begun := time.Now()
		p.Begin("a", h.job("a", "acme", ""))
		<-time.After(time.Minute)
		h.end <- errors.New("failure")
		synctest.Wait()
		s, again := p.Begin("a", h.job("a", "acme", ""))
		g.Expect(again).To(BeFalse(), "nobody has heard of it")
		g.Expect(s).To(Equal(p.Look("a")))
		g.Expect(s).To(And(HaveField("Began", begun), HaveField("Ended", begun.Add(time.Minute)), HaveField("Err", MatchError("failure"))))
		g.Expect(p.Look("a")).To(BeZero())
	})
}

func TestPool_cancelsForgottenJobs(t *testing.T) {
	for _, tell := range []bool{false, true} {
		inBubble(t, job.Options{Limits: fair.Limits{Total: 4}, Tell: tell}, func(t *testing.T, g Gomega, p *job.Pool[string], _ *held) {
			g.Expect(p.Forget("a")).To(BeTrue(), "there is nothing to end")
			var log []string
			slow := func(name string) job.Job {
				return job.Job{Run: func(ctx context.Context, _ func(string)) error {
					log = append(log, name+" began")
					<-ctx.Done()
					<-time.After(time.Second)
					log = append(log, name+" ended")
					return nil
				}}
			}
			p.Begin("a", slow("first"))
			synctest.Wait()
			g.Expect(p.Forget("a")).To(BeFalse(), "it is still writing")
			g.Expect(p.Forget("a")).To(BeFalse())
			g.Expect(phase(p, "a")).To(Equal(job.Idle))
			s, begun := p.Begin("a", slow("second"))
			g.Expect(begun).To(BeTrue())
			g.Expect(s.Phase).To(Equal(job.Waiting), "they do not overlap")
			<-time.After(time.Second)
			synctest.Wait()
			g.Expect(phase(p, "a")).To(Equal(job.Running))
			p.Forget("a")
			<-time.After(time.Second)
			synctest.Wait()
			g.Expect(p.Forget("a")).To(BeTrue())
			g.Expect(p.Look("a")).To(BeZero())
			g.Expect(log).To(Equal([]string{"first began", "first ended", "second began", "second ended"}))
		})
	}
}

func TestPool_notifiesWaitingCallers(t *testing.T) {
	inBubble(t, job.Options{Limits: fair.Limits{Total: 1}}, func(t *testing.T, g Gomega, p *job.Pool[string], h *held) {
		var log []string
		telling := func(name string) job.Job {
			j := h.job(name, "acme", "")
			j.Began = func(context.Context) { log = append(log, name+" began") }
			j.Ended = func(context.Context) { log = append(log, name+" ended: "+fmt.Sprint(phase(p, name))) }
			return j
		}
		p.Begin("a", telling("a"))
		p.Begin("b", telling("b"))
		h.end <- nil
		synctest.Wait()
		h.end <- nil
		synctest.Wait()
		g.Expect(log).To(Equal([]string{"a ended: 0", "b began", "b ended: 0"}), "who begins at once need not be told")
	})
}

func TestPool_notifiesCallersThatWaitedForStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := job.New[string](job.Options{Clock: clock.RealClock{}, Limits: fair.Limits{Total: 1}})
		began := make(chan string, 1)
		p.Begin("a", job.Job{
			Run:   func(ctx context.Context, _ func(string)) error { <-ctx.Done(); return ctx.Err() },
			Began: func(context.Context) { began <- "a" },
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		if name := <-began; name != "a" {
			t.Errorf("%s began", name)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPool_updatesProgressInIntervals(t *testing.T) {
	inBubble(t, job.Options{}, func(t *testing.T, g Gomega, p *job.Pool[string], _ *held) {
		p.Begin("a", job.Job{Run: func(ctx context.Context, progress func(string)) error {
			for i := range 5 {
				<-time.After(time.Second)
				progress(fmt.Sprint(i + 1))
			}
			<-ctx.Done()
			return nil
		}})
		var told []string
		for range 5 {
			told = append(told, p.Look("a").Progress)
			<-time.After(1600 * time.Millisecond) // never exactly at a tick
		}
		g.Expect(told).To(Equal([]string{"", "", "3", "3", "5"}))
	})
}

func TestPool_stopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := NewWithT(t), newHeld()
		p, stop := running(t, job.Options{Limits: fair.Limits{Total: 1}})
		ended := false
		p.Begin("a", job.Job{Tenant: fair.Namespace("acme"), Run: func(ctx context.Context, _ func(string)) error {
			g.Expect(fair.From(ctx)).To(Equal(fair.Namespace("acme")))
			<-ctx.Done()
			<-time.After(time.Minute)
			ended = true
			return nil
		}, Ended: func(ctx context.Context) { g.Expect(ctx.Err()).To(HaveOccurred(), "nobody listens any more") }})
		p.Begin("b", h.job("b", "acme", ""))
		synctest.Wait()
		stop()
		g.Expect(ended).To(BeTrue(), "it is waited for")
		p.Begin("c", h.job("c", "acme", ""))
		synctest.Wait()
		g.Expect(h.began).To(BeEmpty(), "what waits does not begin any more")
	})
}

func TestPool_runsJobsBegunBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := job.New[string](job.Options{Limits: fair.Limits{Total: 1}, Clock: clock.RealClock{}}), newHeld()
		p.Begin("a", h.job("a", "acme", ""))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = p.Start(ctx) }()
		synctest.Wait()
		if !slices.Equal(h.began, []string{"a"}) {
			t.Errorf("got %v", h.began)
		}
		cancel()
		synctest.Wait()
	})
}
