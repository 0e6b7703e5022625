package mergerequests_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

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

func TestRecheck_checksListedOpenMergeRequests(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	open, locked := w.request(20, "topic", "main"), w.request(20, "rival", "main")
	g.Expect(w.Activity.MergeRequests.Lock(t.Context(), locked, mergerequest.Plan{})).To(Succeed())
	var tasks queued
	w.Checks = &tasks
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
