package cleanup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
)

func TestClean_deletesSelectedTags(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, map[string]int{"latest": 9, "a": 1, "b": 2, "c": 3, "keep": 9})
	w.store(w.root, map[string]int{"a": 1, "b": 2})
	p, err := w.clean(w.registry, w.run("[abc]|latest", 1))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 2, Deleted: 2, Kept: 3, Removed: 2}))
	w.Expect(w.tags(w.web)).To(Equal([]string{"a", "keep", "latest"}))
	w.Expect(w.tags(w.root)).To(Equal([]string{"a", "b"}))

	all := cleanup.Run{ID: "b", Repository: "", Policy: policy(t, ".*", "", 0, "")}
	_, err = w.clean(w.registry, all)
	held := &cleanup.HeldError{}
	w.Expect(errors.As(err, &held)).To(BeTrue(), "%v", err)
	w.Expect(*held).To(Equal(cleanup.HeldError{Repository: "web", Until: w.clock.Now().UTC().Add(time.Hour)}))
	w.Expect(w.tags(w.root)).To(BeEmpty(), "the others do not wait")
	w.clock.SetTime(held.Until)
	p, err = w.clean(w.registry, all)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 2, Selected: 4, Deleted: 4, Kept: 1, Removed: 2}))
	w.Expect(w.tags(w.web)).To(Equal([]string{"latest"}))
}

func TestClean_namesRepositoryOfProjectItself(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(1))
	w.store(w.root, numbered(1))
	_, err := w.clean(w.registry, cleanup.Run{ID: "a", Repository: cleanup.Root, Policy: policy(t, ".*", "", 0, "")})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.tags(w.root)).To(BeEmpty())
	w.Expect(w.tags(w.web)).To(HaveLen(1))
	p, err := w.clean(w.registry, cleanup.Run{ID: "a", Repository: "unknown", Policy: policy(t, ".*", "", 0, "")})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{}))
}

func TestClean_dryRunDeletesNothing(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(150))
	dry := w.run(".*", 3)
	dry.DryRun = true
	p, err := w.clean(w.registry, dry)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Tags).To(HaveLen(cleanup.MaxTags))
	w.Expect(p.Tags[0]).To(Equal("web:v0146"))
	p.Tags = nil
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 147, Kept: 3}))
	w.Expect(w.tags(w.web)).To(HaveLen(150))
	_, err = w.clean(w.registry, w.run(".*", 3))
	w.Expect(err).NotTo(HaveOccurred(), "it does not count as a cleanup")
}

func TestClean_goesOnInAnotherProcess(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(1000))
	policy := w.run(".*", 10)
	for i := range 4 {
		before := len(w.tags(w.web))
		w.interrupted = func(p cleanup.Progress) bool { return p.Removed >= 100 }
		_, err := w.clean(w.process(), policy)
		w.Expect(err).To(MatchError(context.Canceled))
		w.Expect(len(w.tags(w.web))).To(And(BeNumerically("<", before), BeNumerically(">=", 10)), "attempt %d", i)
	}
	other := w.run(".*", 0)
	other.ID = "b"
	_, err := w.clean(w.process(), other)
	w.Expect(errors.As(err, new(*cleanup.HeldError))).To(BeTrue(), "the interrupted run still has the hour: %v", err)
	w.interrupted = nil
	p, err := w.clean(w.process(), policy)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Deleted).To(BeNumerically(">=", 990))
	again, err := w.clean(w.process(), policy)
	w.Expect(err).NotTo(HaveOccurred())
	again.Removed, p.Removed = 0, 0
	w.Expect(again).To(Equal(p), "a process that does not know that the run has ended")
}

func TestClean_countsAcrossAttempts(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(500))
	w.interrupted = func(p cleanup.Progress) bool { return p.Removed >= 200 }
	_, err := w.clean(w.process(), w.run(".*", 10))
	w.Expect(err).To(MatchError(context.Canceled))
	w.interrupted, w.reports = nil, nil
	p, err := w.clean(w.process(), w.run(".*", 10))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Removed).To(BeNumerically("<=", 290))
	p.Removed = 0
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 490, Deleted: 490, Kept: 10}))
	w.Expect(w.reports).NotTo(BeEmpty())
	w.Expect(w.reports[0].Deleted).To(BeNumerically(">=", 200), "it does not begin at 0 again")
}

func TestClean_leavesTagsThatArePushedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.clock.SetTime(time.Now().Add(time.Hour)) // so that only the digest shows the push
	w.store(w.web, numbered(300))
	pushed := false
	w.interrupted = func(cleanup.Progress) bool {
		if !pushed {
			pushed = true // after the first hundred
			w.store(w.web, map[string]int{"v0000": 7000, "v0001": 7000, "new": 7000})
		}
		return false
	}
	p, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.tags(w.web)).To(Equal([]string{"new", "v0000", "v0001"}))
	w.Expect(p).To(And(HaveField("Deleted", int64(298)), HaveField("Kept", int64(2))))
}

func TestClean_leavesTagsThatArePushedAgainWithTheSameImage(t *testing.T) {
	w := newWorld(t)
	ages := numbered(300)
	w.store(w.web, ages)
	w.clock.SetTime(time.Now()) // only the time shows the push
	w.interrupted = func(cleanup.Progress) bool { return true }
	_, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).To(MatchError(context.Canceled))
	w.interrupted = nil
	w.store(w.web, map[string]int{"v0000": 300, "v0299": 1, "new": 5000})
	w.clock.SetTime(time.Now().Add(time.Minute))
	p, err := w.clean(w.process(), w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.tags(w.web)).To(Equal([]string{"new", "v0000", "v0299"}))
	w.Expect(p).To(And(HaveField("Kept", int64(3)), HaveField("Failed", BeZero())))
}

func TestClean_countsTagsThatFail(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(250))
	bad := "tags/v0007"
	w.storage.refuse.Store(&bad)
	p, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Failure).To(MatchError(errFaulty))
	p.Failure = nil
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 250, Deleted: 249, Failed: 1, Removed: 249}))
	w.storage.refuse.Store(nil)
	p, err = w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 250, Deleted: 250, Removed: 1}))
}

func TestClean_failsWhileStorageIsDown(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(300))
	w.interrupted = func(cleanup.Progress) bool {
		w.storage.down.Store(true)
		return false
	}
	_, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).To(MatchError(errFaulty))
	w.Expect(w.tags(w.web)).To(HaveLen(200))
	w.interrupted = nil
	w.storage.down.Store(false)
	p, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{Repositories: 1, Selected: 300, Deleted: 300, Removed: 200}))
}

func TestClean_endsIfRepositoryIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(300))
	w.interrupted = func(cleanup.Progress) bool {
		w.interrupted = nil
		w.Expect(w.registry.Records.Removing(t.Context(), w.web.ID, record.DeleteScheduled)).To(Succeed())
		return false
	}
	p, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Removed).To(Equal(int64(100)))
	w.interrupted = nil
	p, err = w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(Equal(cleanup.Progress{}))
}

func TestClean_goesOnWhileAnotherRunBegins(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, numbered(300))
	w.interrupted = func(cleanup.Progress) bool {
		w.interrupted = nil
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		other := w.run("v000.", 0)
		other.ID = "b"
		_, err := w.clean(w.process(), other)
		w.Expect(err).NotTo(HaveOccurred())
		return false
	}
	p, err := w.clean(w.registry, w.run(".*", 0))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p).To(And(HaveField("Deleted", int64(300)), HaveField("Kept", BeZero())))
	w.Expect(w.tags(w.web)).To(BeEmpty())
}

func TestClean_endsBesideAnotherRun(t *testing.T) {
	w := newWorld(t)
	w.ensure("third")
	w.store(w.root, numbered(3))
	w.store(w.web, numbered(10))
	runs := map[string]cleanup.Progress{"a": {}, "b": {}}
	for i := 0; len(runs) > 0; i++ {
		w.Expect(i).To(BeNumerically("<", 10), "%v do not end", runs)
		for id, before := range runs {
			p, err := w.clean(w.process(), cleanup.Run{ID: id, Policy: policy(t, ".*", "", 0, "")})
			w.Expect(p.Repositories).To(BeNumerically(">=", before.Repositories))
			w.Expect(p.Deleted).To(BeNumerically(">=", before.Deleted))
			runs[id] = p
			if err == nil {
				w.Expect(p.Repositories).To(Equal(int64(3)))
				delete(runs, id)
				continue
			}
			w.Expect(errors.As(err, new(*cleanup.HeldError))).To(BeTrue(), "%v", err)
		}
		w.clock.SetTime(w.clock.Now().Add(30 * time.Minute))
	}
}

func TestClean_treatsMissingDatesAsNow(t *testing.T) {
	w := newWorld(t)
	w.store(w.web, map[string]int{"old": 100})
	registrytest.Store(t, w.registry, w.web, map[string]string{"undated": "{}"})
	r := w.run(".*", 0)
	r.Policy = policy(t, ".*", "", 0, "1h")
	p, err := w.clean(w.registry, r)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(p.Deleted).To(Equal(int64(1)))
	w.Expect(w.tags(w.web)).To(Equal([]string{"undated"}))
}
