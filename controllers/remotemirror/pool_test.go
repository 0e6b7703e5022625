package remotemirror

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

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/job"
)

func newLine(t *testing.T, l Limits) *pool {
	t.Helper()
	p := newPool(clocktesting.NewFakePassiveClock(time.Now()), l)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx) }()
	g := NewWithT(t)
	t.Cleanup(func() {
		stop()
		g.Eventually(ended).Should(Receive(BeNil()), "it ends with its context")
	})
	// A push that begins before the pool runs must wait, and so wakes its mirror when it begins.
	first := job.Job{Run: func(context.Context, func(string)) error { return nil }}
	g.Eventually(func() phase {
		p.Begin("first", first)
		return p.Look("first").Phase
	}).Should(Equal(done), "it runs")
	return p
}

func named(name string) *v1alpha1.RemoteMirror {
	return &v1alpha1.RemoteMirror{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// to returns a host as the target of a tenant that has mirrors only there.
func to(host string) target { return target{fair.Namespace(host), host} }

// held is a push that signals when it begins, and ends with the result that is sent or with its context.
type held struct {
	began chan string
	end   chan error
}

func (h held) push(name string) pushFunc {
	return func(ctx context.Context) (transfer.PushResult, error) {
		h.began <- name
		select {
		case err := <-h.end:
			return transfer.PushResult{Updated: 1}, err
		case <-ctx.Done():
			return transfer.PushResult{}, ctx.Err()
		}
	}
}

func newHeld() held { return held{make(chan string, 100), make(chan error)} }

func TestPush_isReportedOnce(t *testing.T) {
	g := NewWithT(t)
	p, h := newLine(t, DefaultLimits()), newHeld()
	m := named("a")
	g.Expect(p.look(m.UID).phase).To(Equal(idle))
	want := goal{refs: "r", rules: "s"}
	p.begin(m, to("host"), want, h.push("a"))
	g.Eventually(func() phase { return p.look(m.UID).phase }).Should(Equal(pushing))
	g.Expect(p.begin(m, to("host"), goal{refs: "other"}, h.push("b")).goal).To(Equal(want), "one at a time")
	g.Eventually(h.began).Should(Receive(Equal("a")))
	h.end <- errors.New("refused")
	g.Eventually(p.wake).Should(Receive(HaveField("Object.Name", "a")))
	ended := p.look(m.UID)
	g.Expect(ended.phase).To(Equal(done))
	g.Expect(ended.goal).To(Equal(want))
	g.Expect(ended.err).To(MatchError("refused"))
	g.Expect(p.look(m.UID).phase).To(Equal(idle))
	g.Expect(h.began).To(BeEmpty())
}

func TestPushes_areLimitedInAllAndPerHost(t *testing.T) {
	g := NewWithT(t)
	p, h := newLine(t, Limits{Concurrency: 3, PerHost: 2}), newHeld()
	for i := range 4 {
		p.begin(named(fmt.Sprint("busy-", i)), target{fair.Namespace(fmt.Sprint(i)), "busy"}, goal{}, h.push("busy"))
	}
	p.begin(named("quiet"), to("quiet"), goal{}, h.push("quiet"))
	p.begin(named("late"), to("late"), goal{}, h.push("late"))
	for range 3 {
		g.Eventually(h.began).Should(Receive(BeElementOf("busy", "quiet")))
	}
	g.Expect(p.look("busy-2").phase).To(Equal(queued), "there are two to its host")
	g.Expect(p.look("quiet").phase).To(Equal(pushing), "who waits for a host keeps nobody else waiting")
	g.Expect(p.look("late").phase).To(Equal(queued), "there are three")
	g.Consistently(h.began).WithTimeout(50 * time.Millisecond).ShouldNot(Receive())
	listen(t, p)
	for range 6 {
		select {
		case h.end <- nil:
		case <-time.After(10 * time.Second):
			t.Fatal("a push does not run")
		}
	}
	for i := range 4 {
		g.Eventually(func() phase { return p.look(types.UID(fmt.Sprint("busy-", i))).phase }).Should(BeElementOf(done, idle))
	}
}

// listen discards the events for the controller.
func listen(t *testing.T, p *pool) {
	t.Helper()
	go func() {
		for {
			select {
			case <-p.wake:
			case <-t.Context().Done():
				return
			}
		}
	}()
}

func TestPushes_leaveSlotsToOtherTenants(t *testing.T) {
	g := NewWithT(t)
	p, h := newLine(t, Limits{Concurrency: 8, PerHost: 4}), newHeld()
	listen(t, p)
	begin := func(tenant, name, host string) {
		p.begin(named(name), target{fair.Namespace(tenant), host}, goal{}, h.push(name))
	}
	for i := range 5000 {
		begin("attacker", fmt.Sprint("a", i), []string{"a.attacker.example", "b.attacker.example"}[i%2])
	}
	begin("victim", "v", "git.example")
	g.Eventually(func() phase { return p.look("v").phase }).Should(Equal(pushing), "it does not wait for 5,000 of somebody else")
	for range 5 {
		g.Eventually(h.began).Should(Receive())
	}
	g.Consistently(h.began).WithTimeout(50*time.Millisecond).ShouldNot(Receive(), "half of the slots are for others")
	for i := range 4 {
		name := fmt.Sprint("other-", i)
		begin(name, name, name+".example")
	}
	g.Expect(p.look("other-2").phase).To(Equal(pushing))
	g.Expect(p.look("other-3").phase).To(Equal(queued), "all eight run")
	p.forget("a0")
	g.Eventually(func() phase { return p.look("other-3").phase }).Should(Equal(pushing), "who has nothing goes ahead of who has much")
	p.forget("v")
	g.Eventually(func() phase { return p.look("a4").phase }).Should(Equal(pushing), "what nobody else needs")
}

func TestPushes_leaveHalfOfAHostToOtherTenants(t *testing.T) {
	g := NewWithT(t)
	p, h := newLine(t, Limits{Concurrency: 8, PerHost: 4}), newHeld()
	for i := range 4 {
		p.begin(named(fmt.Sprint("a", i)), target{fair.Namespace("attacker"), "git.example"}, goal{}, h.push("attacker"))
	}
	g.Eventually(func() phase { return p.look("a1").phase }).Should(Equal(pushing))
	g.Expect(p.look("a2").phase).To(Equal(queued), "half of what one host gets is for others")
	p.begin(named("v"), target{fair.Namespace("victim"), "git.example"}, goal{}, h.push("victim"))
	g.Expect(p.look("v").phase).To(Equal(pushing))
}

func TestPush_isOnBehalfOfItsTenant(t *testing.T) {
	p, who := newLine(t, DefaultLimits()), make(chan fair.Key, 1)
	p.begin(named("a"), target{fair.Namespace("acme"), "git.example"}, goal{}, func(ctx context.Context) (transfer.PushResult, error) {
		who <- fair.From(ctx)
		return transfer.PushResult{}, nil
	})
	NewWithT(t).Eventually(who).Should(Receive(Equal(fair.Namespace("acme"))))
}

func TestForget_endsAPush(t *testing.T) {
	g := NewWithT(t)
	p, h := newLine(t, Limits{Concurrency: 1, PerHost: 1}), newHeld()
	p.forget("nobody")
	p.begin(named("a"), to("host"), goal{}, h.push("a"))
	p.begin(named("b"), to("host"), goal{}, h.push("b"))
	p.begin(named("c"), to("host"), goal{}, h.push("c"))
	g.Eventually(h.began).Should(Receive(Equal("a")))
	p.forget("b")
	p.forget("a")
	g.Eventually(p.wake).Should(Receive(HaveField("Object.Name", "a")))
	g.Eventually(p.wake).Should(Receive(HaveField("Object.Name", "c")), "it has begun")
	g.Eventually(h.began).Should(Receive(Equal("c")))
	g.Expect(p.look("a").phase).To(Equal(idle))
	h.end <- nil
	g.Eventually(p.wake).Should(Receive())
}

func TestConclude_retriesWithAGrowingDelay(t *testing.T) {
	g := NewWithT(t)
	m, now := named("a"), time.Now()
	for _, want := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600} {
		conclude(m, report{err: errors.New("no"), ended: now})
		want *= time.Second
		g.Expect(m.Status.NextAttemptAt.Sub(now)).To(And(BeNumerically(">=", want-time.Second), BeNumerically("<=", want*6/5)), "attempt %d", m.Status.Attempts)
	}
	conclude(m, report{ended: now, goal: goal{refs: "r"}})
	g.Expect(m.Status).To(And(HaveField("Attempts", BeZero()), HaveField("LastError", BeEmpty()), HaveField("NextAttemptAt", BeNil()), HaveField("PushedChecksum", "r")))
}

func TestConclude_keepsWhyTheRepositoryIsOutOfReachFromUsers(t *testing.T) {
	g := NewWithT(t)
	for _, err := range []error{git.ErrNotFound, git.ErrNotRepository, git.ErrStorageMissing} {
		m := named("a")
		conclude(m, report{err: fmt.Errorf("repository /srv/a.git: %w", err)})
		g.Expect(m.Status.LastError).To(Equal(git.Unavailable), "%v", err)
	}
}

func TestRefusals_nameAtMostTwentyRefs(t *testing.T) {
	g := NewWithT(t)
	all := make([]transfer.RefusedRef, 0, 100)
	for i := range 100 {
		all = append(all, transfer.RefusedRef{Name: fmt.Sprintf("refs/heads/%d", i), Diverged: true})
	}
	g.Expect(refusals(all)).To(And(ContainSubstring("refs/heads/19 and 80 more"), Not(ContainSubstring("refs/heads/20"))))
}
