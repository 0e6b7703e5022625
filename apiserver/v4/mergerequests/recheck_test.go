package mergerequests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
)

// queued are the tasks that were added to a queue.
type queued []job.Task

func (q *queued) Add(_ context.Context, t job.Task) error {
	*q = append(*q, t)
	return nil
}

func (q *queued) AddAfter(ctx context.Context, t job.Task, _ time.Duration) error {
	return q.Add(ctx, t)
}

// unqueued is a queue to which nothing can be added.
type unqueued struct{}

func (unqueued) Add(context.Context, job.Task) error { return errors.New("the queue is away") }

func (q unqueued) AddAfter(ctx context.Context, t job.Task, _ time.Duration) error {
	return q.Add(ctx, t)
}

func TestRecheck_queuesInOrderOfKeysAndDoesNotFailList(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	for n := range 11 {
		w.request(20, fmt.Sprint("branch", n), "main")
	}
	const list = "GET /merge_requests?scope=all&with_merge_status_recheck=true"
	var tasks queued
	w.Queue = func(job.QueueOptions) family.Tasks { return &tasks }
	w.Serve(mergerequests.New(w.Kit).Table())
	g.Expect(w.As("rita", list, "").Code).To(Equal(200))
	g.Expect(tasks).To(HaveLen(11))
	g.Expect(slices.IsSortedFunc(tasks, func(a, b job.Task) int { return strings.Compare(a.Key, b.Key) })).To(BeTrue(), "%v", tasks)
	w.Queue = func(job.QueueOptions) family.Tasks { return unqueued{} }
	w.Serve(mergerequests.New(w.Kit).Table())
	g.Expect(w.As("rita", list, "").Code).To(Equal(200))
}

func TestRecheck_checksListedOpenMergeRequests(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	open, locked := w.request(20, "topic", "main"), w.request(20, "rival", "main")
	g.Expect(w.Activity.MergeRequests.Lock(t.Context(), locked, mergerequest.Plan{})).To(Succeed())
	var tasks queued
	w.Queue = func(job.QueueOptions) family.Tasks { return &tasks }
	w.Serve(mergerequests.New(w.Kit).Table())
	const all = "GET /merge_requests?scope=all"
	task := job.Task{Key: fmt.Sprint(open.ID), Tenant: fair.Namespace("acme")}
	for _, tt := range []struct {
		as, request string
		restricted  bool
		want        queued
	}{
		{"rita", all, false, nil},
		{"rita", all + "&with_merge_status_recheck=false", false, nil},
		{"rita", all + "&with_merge_status_recheck=true", false, queued{task}},
		{"", all + "&with_merge_status_recheck=true&view=simple", false, queued{task}},
		{"rita", "GET /projects/20/merge_requests?state=locked&with_merge_status_recheck=true", false, nil},
		{"rita", all + "&with_merge_status_recheck=true", true, nil},
		{"", all + "&with_merge_status_recheck=true", true, nil},
		{"dora", all + "&with_merge_status_recheck=true", true, queued{task}},
	} {
		tasks = nil
		w.Feature(feature.RestrictMergeStatusRecheck, tt.restricted)
		g.Expect(w.As(tt.as, tt.request, "").Code).To(Equal(200))
		g.Expect(tasks).To(Equal(tt.want), "%+v", tt)
	}
}
