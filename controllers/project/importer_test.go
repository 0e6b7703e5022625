package project

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// line is a running importer with a fake clock.
type line struct {
	*importer
	clock *clocktesting.FakePassiveClock
}

func newLine(t *testing.T) line {
	t.Helper()
	clk := clocktesting.NewFakePassiveClock(time.Now())
	wake := make(chan event.TypedGenericEvent[*v1alpha1.Project])
	l := line{newImporter("imports", clk, func(p *v1alpha1.Project) fair.Key { return fair.Namespace(p.Namespace) }, wake), clk}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).Should(Receive(BeNil()), "it ends with its context")
	})
	return l
}

func (l line) pass(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

func named(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// blocking returns an import that signals when it begins, and ends with the error that is sent or with its context.
func blocking() (run importFunc, began chan func(transfer.Progress), end chan error) {
	began, end = make(chan func(transfer.Progress), 1), make(chan error)
	return func(ctx context.Context, progress func(transfer.Progress)) error {
		began <- progress
		select {
		case err := <-end:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, began, end
}

func TestImport_runsOnceAndReportsItsProgress(t *testing.T) {
	g := NewWithT(t)
	l := newLine(t)
	run, began, end := blocking()
	p := named("web")
	g.Expect(l.begin(p, run)).To(Equal(state{}))
	var progress func(transfer.Progress)
	g.Eventually(began).Should(Receive(&progress))

	progress(transfer.Progress{Phase: "Receiving objects", Percent: 12})
	g.Expect(l.begin(p, run)).To(Equal(state{}), "what is written wakes the controller: it is not to write each percent")
	l.pass(progressInterval)
	g.Expect(l.begin(p, run)).To(Equal(state{phase: "Receiving objects: 12%"}))
	progress(transfer.Progress{Phase: "Receiving objects", Percent: 13})
	g.Expect(l.begin(p, run)).To(Equal(state{phase: "Receiving objects: 12%"}))
	g.Expect(began).To(BeEmpty(), "it does not begin again")

	end <- nil
	g.Eventually(l.wake).Should(Receive(HaveField("Object.Name", "web")))
	g.Expect(l.forget(p.UID)).To(BeTrue())
	g.Expect(l.Look(p.UID)).To(BeZero())
}

func TestImport_isRetriedWithAGrowingDelay(t *testing.T) {
	g := NewWithT(t)
	l := newLine(t)
	p := named("web")
	refused := errors.New("refused")
	fail := func(context.Context, func(transfer.Progress)) error { return refused }
	var delays []time.Duration
	for range 8 {
		g.Expect(l.begin(p, fail)).To(Equal(state{}))
		g.Eventually(l.wake).Should(Receive())
		s := l.begin(p, fail)
		g.Expect(s.err).To(MatchError(refused))
		delays = append(delays, s.retry)
		g.Expect(l.begin(p, fail)).To(Equal(s), "it is not due")
		l.pass(s.retry)
	}
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 320, 600, 600} {
		want *= time.Second
		g.Expect(delays[i]).To(And(BeNumerically(">=", want), BeNumerically("<=", want*6/5)), "attempt %d", i+1)
	}
	g.Expect(l.forget(p.UID)).To(BeTrue())
	g.Expect(l.Look(p.UID)).To(BeZero())
}

func TestImport_isOnBehalfOfItsTenant(t *testing.T) {
	l, who := newLine(t), make(chan fair.Key, 1)
	p := named("web")
	p.Namespace = "acme"
	l.begin(p, func(ctx context.Context, _ func(transfer.Progress)) error { who <- fair.From(ctx); return nil })
	NewWithT(t).Eventually(who).Should(Receive(Equal(fair.Namespace("acme"))))
	NewWithT(t).Eventually(l.wake).Should(Receive())
}

func TestImport_isRetriedLateAfterALimit(t *testing.T) {
	g := NewWithT(t)
	l := newLine(t)
	p := named("web")
	tooLarge := func(context.Context, func(transfer.Progress)) error {
		return fmt.Errorf("git fetch: %w", &git.LimitError{Text: "The repository is too large."})
	}
	l.begin(p, tooLarge)
	g.Eventually(l.wake).Should(Receive())
	g.Expect(l.begin(p, tooLarge).retry).To(BeNumerically(">=", limitRetry), "it would end in the same way")
}

func TestImport_isRetriedSoonWithoutEnoughMemory(t *testing.T) {
	g := NewWithT(t)
	l := newLine(t)
	p := named("web")
	short := func(context.Context, func(transfer.Progress)) error {
		return fmt.Errorf("git fetch: %w", &git.LimitError{Text: "This takes more memory than there is.", Passing: true})
	}
	l.begin(p, short)
	g.Eventually(l.wake).Should(Receive())
	first := l.begin(p, short).retry
	g.Expect(first).To(And(BeNumerically(">=", firstRetry), BeNumerically("<=", firstRetry*6/5)), "there may be some in a moment")
	l.pass(first)
	l.begin(p, short)
	g.Eventually(l.wake).Should(Receive())
	g.Expect(l.begin(p, short).retry).To(BeNumerically(">=", 2*firstRetry), "each time later")
}

func TestForget_endsAnImport(t *testing.T) {
	g := NewWithT(t)
	l := newLine(t)
	p := named("web")
	run, began, _ := blocking()
	g.Expect(l.forget(p.UID)).To(BeTrue(), "there is nothing to end")
	l.begin(p, run)
	g.Eventually(began).Should(Receive())
	g.Expect(l.forget(p.UID)).To(BeFalse(), "it is still writing")
	g.Eventually(l.wake).Should(Receive())
	g.Expect(l.forget(p.UID)).To(BeTrue())
}

// endless begins imports that signal when they begin, and run until they are forgotten.
func (l line) endless(began chan string, namespace string, names ...string) {
	for _, name := range names {
		p := named(name)
		p.Namespace = namespace
		l.begin(p, func(ctx context.Context, _ func(transfer.Progress)) error {
			began <- name
			<-ctx.Done()
			return ctx.Err()
		})
	}
}

// listen discards the events for the controller.
func (l line) listen(t *testing.T) {
	t.Helper()
	go func() {
		for {
			select {
			case <-l.wake:
			case <-t.Context().Done():
				return
			}
		}
	}()
}

func TestImports_leaveSlotsToOtherNamespaces(t *testing.T) {
	g := NewWithT(t)
	l, began := newLine(t), make(chan string, 20)
	l.listen(t)
	l.endless(began, "attacker", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7")
	for range importsOf {
		g.Eventually(began).Should(Receive(HavePrefix("a")))
	}
	l.endless(began, "victim", "v0", "v1", "v2")
	for range importers - importsOf {
		g.Eventually(began).Should(Receive(HavePrefix("v")))
	}
	g.Consistently(began).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "%d run", importers)
	g.Expect(l.forget("v2")).To(BeTrue(), "one that waits is gone at once")
	l.endless(began, "newcomer", "n0")
	g.Expect(l.forget("a0")).To(BeFalse())
	g.Eventually(began).Should(Receive(Equal("n0")), "who has nothing goes ahead of who has waited with much")
	g.Expect(l.forget("v0")).To(BeFalse())
	g.Eventually(began).Should(Receive(Equal("a2")))
}

func TestUnfinished_ignoresPushes(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha1.Project{Status: v1alpha1.ProjectStatus{FullPath: "a/b", Visibility: v1alpha1.VisibilityPrivate}}
	fresh := unfinished(p)
	p.Status.RefsChecksum = "one"
	begun := unfinished(p)
	g.Expect(begun).NotTo(Equal(fresh))
	p.Status.RefsChecksum, p.Status.HeadCommit = "two", "commit"
	g.Expect(unfinished(p)).To(Equal(begun))
	p.Status.Visibility = v1alpha1.VisibilityPublic
	g.Expect(unfinished(p)).NotTo(Equal(begun))
}
