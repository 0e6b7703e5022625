package mergerequests_test

import (
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// key matches the task of a merge request.
func key(m mergerequest.MergeRequest) any { return HaveField("Key", strconv.FormatInt(m.ID, 10)) }

func TestWatcher_checksMergeRequestsOfMovedBranches(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	from, into, other := w.request(20, "topic", "main"), w.request(20, "rival", "topic"), w.request(20, "rival", "main")
	fork := w.request(21, "topic", "stable")
	checker := mergecheck.New(w.Catalog, w.Repositories, w.Activity, w.Clock)
	for _, tt := range []struct {
		project string
		refs    []string
		want    []any
	}{
		{"web", []string{"refs/tags/topic", "refs/heads/topic"}, []any{key(from), key(into)}},
		{"fork", []string{"refs/heads/topic"}, []any{key(fork)}},
	} {
		var tasks queued
		e := change.Event{Project: types.NamespacedName{Namespace: "acme", Name: tt.project}}
		for _, name := range tt.refs {
			e.Updates = append(e.Updates, update.Ref{Name: name})
		}
		g.Expect(mergecheck.NewWatcher(checker, &tasks).Written(t.Context(), e)).To(Succeed())
		g.Expect(tasks).To(HaveExactElements(tt.want...))
	}

	for _, m := range []mergerequest.MergeRequest{from, fork} {
		g.Expect(checker.Check(t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(m.ID)}}, nil)).To(Succeed())
		g.Expect(w.read(m).MergeStatus).To(Equal(mergerequest.CanBeMerged))
	}
	g.Expect(w.read(other).MergeStatus).To(Equal(mergerequest.Unchecked))
	g.Expect(checker.Check(t.Context(), job.Attempt{Task: job.Task{Key: "99"}}, nil)).To(Succeed(), "deleted before")

	release, before, checked := gittest.Hold(t, w.binary, "merge-tree"), w.starts("merge-tree"), make(chan error, 1)
	go func() {
		checked <- checker.Check(t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(other.ID)}}, nil)
	}()
	g.Eventually(w.starts).WithArguments("merge-tree").Should(BeNumerically(">", before))
	g.Expect(w.Activity.MergeRequests.Delete(t.Context(), other.ID)).To(Succeed())
	release()
	g.Expect(<-checked).To(Succeed(), "deleted meanwhile")
}

// The faster check has read the source branch before the push.
func TestWatcher_hasOneTaskUnlessPushMerges(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	topic, rival := w.request(20, "topic", "main"), w.request(20, "rival", "main")
	watcher := func(tasks *queued) *mergecheck.Watcher {
		return mergecheck.NewWatcher(mergecheck.New(w.Catalog, w.Repositories, w.Activity, w.Clock), tasks)
	}
	push := func(commit string) (tasks queued) {
		u := update.Ref{Name: "refs/heads/main", Old: w.head("main"), New: commit}
		w.web.Git(t, "update-ref", u.Name, u.New)
		e := change.Event{Project: types.NamespacedName{Namespace: "acme", Name: "web"}, Updates: []update.Ref{u}}
		g.Expect(watcher(&tasks).Written(t.Context(), e)).To(Succeed())
		return tasks
	}
	g.Expect(push(w.commit("main", "main"))).To(HaveExactElements(key(topic), key(rival)))
	merged := w.web.Git(t, "commit-tree", "-p", "main", "-p", "topic", "-m", "x", w.head("topic^{tree}"))
	g.Expect(push(merged)).To(HaveExactElements(HaveField("Key", fmt.Sprintf("%d %s", topic.ID, merged)), key(rival)))
}

func TestCheck_isMadeAgainIfItLoses(t *testing.T) {
	for name, keepsHead := range map[string]bool{"when it keeps the head": true, "when it is recorded": false} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m, old := w.request(20, "topic", "main"), w.head("topic~1")
			checker := mergecheck.New(w.Catalog, w.Repositories, w.Activity, w.Clock)
			release, before, checked := gittest.Hold(t, w.binary, "merge-tree"), w.starts("merge-tree"), make(chan error, 1)
			go func() {
				checked <- checker.Check(t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(m.ID)}}, nil)
			}()
			g.Eventually(w.starts).WithArguments("merge-tree").Should(BeNumerically(">", before))
			if keepsHead {
				w.web.Git(t, "update-ref", mergecheck.Head(m.IID), old)
			}
			main := w.head("main")
			g.Expect(w.Activity.MergeRequests.RecordCheck(t.Context(), w.read(m), mergerequest.Check{
				Head: old, Base: main, Target: main, Changes: "1", Status: mergerequest.CanBeMerged,
			})).Error().NotTo(HaveOccurred())
			release()
			g.Expect(<-checked).To(Succeed())
			g.Expect(w.read(m).Head).To(Equal(w.head("topic")))
			g.Expect(w.head(mergecheck.Head(m.IID))).To(Equal(w.head("topic")))
		})
	}
}
