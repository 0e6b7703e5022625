// Package mergerequests is the family "Merge requests" of the core interface document.
package mergerequests

import (
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergecheck"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Family serves merge requests.
type Family struct {
	family.Kit
	items   item.Finder
	labels  *item.Labels
	checker *mergecheck.Checker
	// checks is the queue of checks: the key of a task is the id of a merge request.
	checks family.Tasks
	// launcher creates the pipelines of merge requests.
	launcher *launch.Launcher
	// projects have the settings of approvals.
	projects *store.Store[store.Only, *v1alpha1.Project]
}

// concurrentChecks and concurrentMerges are the maximum numbers of merge requests that are checked, and merged after their pipelines, at once in
// the background.
const concurrentChecks, concurrentMerges = 2, 2

// New returns the family.
func New(k family.Kit) *Family {
	f := &Family{
		Kit: k, launcher: launch.New(k), projects: store.Projects(k.Writer), items: item.Finder{Stores: k.Activity}, labels: item.NewLabels(k.Catalog, k.Writer),
		checker: mergecheck.New(k.Catalog, k.Repositories, k.Activity, k.Clock).Removing(RemoveSource(k)),
	}
	f.checks = k.Queue(job.QueueOptions{Name: mergecheck.QueueName, Limits: fair.Halves(concurrentChecks), Run: f.checker.Check})
	k.OnWritten("checks of merge requests", mergecheck.NewWatcher(f.checker, f.checks).Written)
	k.Queue(job.QueueOptions{Name: pipeline.AwaitQueue, Limits: fair.Halves(concurrentMerges), Run: f.pipelineEnded})
	return f
}

const (
	ofProject = "/projects/{id}/merge_requests"
	one       = ofProject + "/{merge_request_iid}"
)

// Table lists the endpoints.
func (f *Family) Table() endpoint.Table {
	return slices.Concat(endpoint.Table{
		endpoint.Get(one, f.get).Needs(auth.ReadMergeRequests).Found(f.items.MergeRequest).Anonymous(endpoint.Served).
			Doc("Get a merge request."),
	}, f.diffTable(), f.listTable(), f.writeTable(), f.peopleTable(), f.timeTable(), f.issueTable(), f.approvalTable(), f.settingTable(), f.mergeTable())
}

type getRequest struct {
	Diverged bool `param:"include_diverged_commits_count" default:"false" doc:"Whether to count the commits that only the target branch has."`
	Rebase   bool `param:"include_rebase_in_progress" default:"false" doc:"Whether to show whether the source branch is being rebased."`
}

func (f *Family) get(ctx context.Context, s auth.ProjectRecord[item.MergeRequest], r *getRequest) (Detailed, error) {
	m, err := f.refresh(ctx, s.Record.MergeRequest)
	if err != nil {
		return Detailed{}, err
	}
	d, err := f.detail(ctx, s.Subject, m)
	if err == nil && r.Diverged {
		d, err = f.diverged(ctx, m, d)
	}
	if r.Rebase {
		d.RebaseInProgress = new(bool) // a rebase ends before its answer
	}
	return d, err
}
