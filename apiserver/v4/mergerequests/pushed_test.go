package mergerequests_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/stateevent"
)

// checks runs the tasks of a watcher at once, after before.
type checks struct {
	*mergecheck.Checker
	before func()
	ended  chan error
}

func (c checks) Add(ctx context.Context, t job.Task) error {
	c.before()
	c.ended <- c.Check(ctx, job.Attempt{Task: t}, nil)
	return nil
}

// pushes changes branches of web as mary, and waits for count checks. An empty commit deletes a branch.
func (w gitWorld) pushes(count int, branches map[string]string) {
	w.t.Helper()
	w.pushesLate(count, branches, func() {})
}

// pushesLate is pushes, with checks that start after before.
func (w gitWorld) pushesLate(count int, branches map[string]string, before func()) {
	w.t.Helper()
	g := NewWithT(w.t)
	e := change.Event{Project: types.NamespacedName{Namespace: "acme", Name: "web"}, By: w.UserRow("mary")}
	for branch, commit := range branches {
		u := update.Ref{Name: "refs/heads/" + branch, Old: w.head(branch), New: commit}
		e.Updates = append(e.Updates, u)
		if commit == "" {
			w.web.Git(w.t, "update-ref", "-d", u.Name)
		} else {
			w.web.Git(w.t, "update-ref", u.Name, commit)
		}
	}
	c := checks{mergecheck.New(w.Catalog, w.Repositories, w.Activity, w.Clock), before, make(chan error, count)}
	g.Expect(mergecheck.NewWatcher(c.Checker, c).Written(w.t.Context(), e)).To(Succeed())
	for range count {
		g.Eventually(c.ended).Should(Receive(BeNil()))
	}
}

func TestWatcher_marksMergeRequestAsMergedByPush(t *testing.T) {
	for name, tt := range map[string]struct {
		// push returns the branches after the push, and the head and the merge commit that the merge request has then.
		push func(w gitWorld) (branches map[string]string, head, commit string)
		read bool // the merge request is read before the task runs
	}{
		"fast-forward": {push: func(w gitWorld) (map[string]string, string, string) {
			return map[string]string{"main": w.head("topic")}, w.head("topic"), w.head("topic")
		}},
		"more commits on top": {push: func(w gitWorld) (map[string]string, string, string) {
			return map[string]string{"main": w.commit("topic", "topic")}, w.head("topic"), w.head("topic")
		}},
		"merge commit": {push: func(w gitWorld) (map[string]string, string, string) {
			merged := w.web.Git(w.t, "commit-tree", "-p", "main", "-p", "topic", "-m", "x", w.head("topic^{tree}"))
			return map[string]string{"main": w.commit(merged, merged)}, w.head("topic"), merged
		}},
		"source branch deleted": {push: func(w gitWorld) (map[string]string, string, string) {
			return map[string]string{"main": w.head("topic"), "topic": ""}, w.head("topic"), w.head("topic")
		}},
		"source branch moved": {push: func(w gitWorld) (map[string]string, string, string) {
			next := w.commit("topic", "topic")
			return map[string]string{"main": next, "topic": next}, next, next
		}},
		"read meanwhile": {read: true, push: func(w gitWorld) (map[string]string, string, string) {
			return map[string]string{"main": w.head("topic")}, w.head("topic"), w.head("topic")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main", func(m *mergerequest.MergeRequest) { m.Title = "Draft: x" })
			base := w.head("main")
			w.get(m)
			branches, head, commit := tt.push(w)
			if tt.read {
				w.web.Git(t, "update-ref", "refs/heads/main", commit)
				g.Expect(w.get(m).DetailedMergeStatus).To(Equal("checking"))
				w.web.Git(t, "update-ref", "refs/heads/main", base)
			}
			w.pushes(1, branches)
			d := w.get(m)
			g.Expect([]any{d.State, *d.MergeCommitSHA, *d.SHA}).To(Equal([]any{mergerequest.Merged, commit, head}))
			g.Expect(d.MergeUser.Username).To(Equal("mary"))
			g.Expect(time.Time(d.MergedAt)).NotTo(BeZero())
			g.Expect(*d.DiffRefs).To(And(HaveField("BaseSHA", base), HaveField("HeadSHA", head)))
			g.Expect(w.head("refs/merge-requests/1/head")).To(Equal(head))
			g.Expect(w.notes(m)).To(Equal([]string{"merged"}))
			events, _, err := w.Activity.StateEvents.List(t.Context(), m.Item(), 0, 10)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(events).To(ConsistOf(And(HaveField("State", stateevent.Merged), HaveField("User.ID", int64(2)))))
		})
	}
}

func TestWatcher_leavesMergeRequestOpen(t *testing.T) {
	for name, push := range map[string]func(w gitWorld) map[string]string{
		"if another branch is pushed":    func(w gitWorld) map[string]string { return map[string]string{"main": w.head("rival")} },
		"if only its first commit came":  func(w gitWorld) map[string]string { return map[string]string{"main": w.head("topic~1")} },
		"if the source branch goes back": func(w gitWorld) map[string]string { return map[string]string{"topic": w.head("main")} },
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			w.get(m)
			w.pushes(1, push(w))
			w.Clock.SetTime(w.Clock.Now().Add(3 * time.Minute))
			g.Expect(w.get(m).State).To(Equal(mergerequest.Opened))
			g.Expect(w.get(m).DetailedMergeStatus).NotTo(Equal("checking"))
		})
	}
}

func TestWatcher_judgesBranchesOfPush(t *testing.T) {
	for name, tt := range map[string]struct {
		push  func(w gitWorld) (main string)
		later func(w gitWorld)
		want  mergerequest.State
	}{
		"target branch changed": {
			func(w gitWorld) string { return w.head("topic") },
			func(w gitWorld) {
				w.web.Git(w.t, "update-ref", "refs/heads/stable", "topic")
				w.done("dora", "PUT /projects/20/merge_requests/1", `{"target_branch":"stable"}`)
			}, mergerequest.Opened,
		},
		"source branch reset to the target branch": {
			func(w gitWorld) string { return w.commit("main", "main") },
			func(w gitWorld) { w.web.Git(w.t, "update-ref", "refs/heads/topic", "main") }, mergerequest.Opened,
		},
		"source branch advanced": {
			func(w gitWorld) string { return w.head("topic") },
			func(w gitWorld) { w.web.Git(w.t, "update-ref", "refs/heads/topic", w.commit("topic", "topic")) }, mergerequest.Merged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			w.get(m)
			w.pushesLate(1, map[string]string{"main": tt.push(w)}, func() { tt.later(w) })
			g.Expect(w.read(m).State).To(Equal(tt.want))
		})
	}
}

func TestWatcher_keepsApprovalsAsProjectSays(t *testing.T) {
	for keeps, approvals := range map[bool]int{true: 1, false: 0} {
		g, w := NewWithT(t), newGitWorld(t, branched(t))
		w.configure(func(s *v1alpha1.MergeRequests) { s.Approvals.KeepOnPush = keeps })
		m := w.request(20, "topic", "main")
		w.get(m)
		g.Expect(w.As("mary", "POST /projects/20/merge_requests/1/approve", "").Code).To(Equal(201))
		next := w.commit("topic", "topic")
		w.pushes(1, map[string]string{"main": next, "topic": next})
		g.Expect(w.read(m)).To(And(HaveField("State", mergerequest.Merged), HaveField("Head", next)))
		g.Expect(w.Activity.MergeRequests.Approvals(t.Context(), m.ID)).To(HaveLen(approvals))
	}
}

// The process can end before the task of a push exists.
func TestRefresh_marksMergeRequestAsMergedWithoutTask(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m, base := w.request(20, "topic", "main"), w.head("main")
	w.get(m)
	w.web.Git(t, "update-ref", "refs/heads/main", "topic")
	g.Expect(w.get(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("DetailedMergeStatus", "checking")))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(405))
	w.Clock.SetTime(w.Clock.Now().Add(3 * time.Minute))
	d := w.get(m)
	g.Expect([]any{d.State, *d.MergeCommitSHA, d.DiffRefs.BaseSHA, d.MergeUser == nil}).To(Equal([]any{mergerequest.Merged, w.head("topic"), base, true}))
	g.Expect(w.notes(m)).To(Equal([]string{"merged"}))
	g.Expect(w.As("rita", "GET /projects/20/merge_requests/1/diffs", "").Body).To(ContainSubstring("topic"))
}
