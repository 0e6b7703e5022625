package mergerequests_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// during makes the next merge call change after it has read the branches, as another request that is faster.
func (w gitWorld) during(change func()) {
	kit := w.Kit
	kit.Clock = &interruption{w.Clock, change}
	w.Serve(mergerequests.New(kit).Table())
}

// interruption is a clock that calls change when it is read for the first time: a merge reads it for the time of its commits.
type interruption struct {
	clock.PassiveClock
	change func()
}

func (i *interruption) Now() time.Time {
	if change := i.change; change != nil {
		i.change = nil
		change()
	}
	return i.PassiveClock.Now()
}

func TestMerge_isRefusedAfterChangeMeanwhile(t *testing.T) {
	const one, changed = "/projects/20/merge_requests/1", `405 {"message":"405 Method Not Allowed"}`
	for name, tt := range map[string]struct {
		as, request, body string
		want              string
	}{
		"another target": {"dora", "PUT " + one, `{"target_branch":"stable"}`, changed},
		"draft":          {"dora", "PUT " + one, `{"title":"Draft: x"}`, changed},
		"closed":         {"dora", "PUT " + one, `{"state_event":"close"}`, changed},
		"unapproved":     {"mary", "POST " + one + "/unapprove", "", changed},
		"stricter rule":  {"dora", "POST " + one + "/approval_rules", `{"name":"more","approvals_required":2}`, changed},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			w.get(m) // before its approvals: they lapse with another head
			g.Expect(w.As("dora", "POST "+one+"/approval_rules", `{"name":"one","approvals_required":1}`).Code).To(Equal(201))
			g.Expect(w.As("mary", "POST "+one+"/approve", "").Code).To(Equal(201))
			refs := w.web.Git(t, "for-each-ref", "refs/heads")
			w.during(func() { g.Expect(w.As(tt.as, tt.request, tt.body).Code).To(BeNumerically("<", 300)) })
			g.Expect(w.merge("dora", m, "").String()).To(Equal(tt.want))
			g.Expect(w.web.Git(t, "for-each-ref", "refs/heads")).To(Equal(refs))
			g.Expect(w.read(m)).To(And(HaveField("State", Not(BeElementOf(mergerequest.Locked, mergerequest.Merged))), HaveField("PlannedCommit", BeEmpty())))
		})
	}
}

// The target branch has moved too, so that the merge is tried again.
func TestMerge_mergesNoPushMeanwhile(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	pushed, main := w.commit("topic", "topic"), w.commit("main", "main")
	w.during(func() {
		w.web.Git(t, "update-ref", "refs/heads/topic", pushed)
		w.web.Git(t, "update-ref", "refs/heads/main", main)
	})
	g.Expect(w.merge("dora", m, "").String()).To(Equal(`409 {"message":"SHA does not match HEAD of source branch: ` + pushed + `"}`))
	g.Expect(w.head("main")).To(Equal(main))
	g.Expect(w.read(m).State).To(Equal(mergerequest.Opened))
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
}

func TestMerge_followsTargetBranch(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m, main := w.request(20, "topic", "main"), w.commit("main", "main")
	w.during(func() { w.web.Git(t, "update-ref", "refs/heads/main", main) })
	g.Expect(w.merge("dora", m, "").Code).To(Equal(200))
	g.Expect(w.head("main^1")).To(Equal(main))
}
