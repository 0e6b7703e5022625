package project

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/job"
)

// Imports take from seconds to hours, so they run outside of reconciles, a few at once, and fewer for one tenant.
const (
	importers  = 4
	importsOf  = 2
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
	// limitRetry is the delay before retrying an import that exceeded a limit of the server, because it would most likely fail again.
	limitRetry = 24 * time.Hour
)

// importFunc imports one repository and reports its progress.
type importFunc func(ctx context.Context, progress func(transfer.Progress)) error

// importer runs imports. The manager starts it.
type importer struct {
	*job.Pool[types.UID]

	// tenant returns the tenant whose share the import of a project uses.
	tenant func(*v1alpha1.Project) fair.Key
	// wake receives the project of each import that has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.Project]
}

// newImporter returns an importer with a name for metrics. Imports and forks have one each, so that no fork waits for hours.
func newImporter(
	name string, clk clock.PassiveClock, tenant func(*v1alpha1.Project) fair.Key, wake chan event.TypedGenericEvent[*v1alpha1.Project],
) *importer {
	return &importer{
		Pool: job.New[types.UID](job.Options{
			Name: name, Limits: fair.Limits{Total: importers, Share: importsOf}, Clock: clk, Retry: retryAfter,
		}),
		tenant: tenant, wake: wake,
	}
}

// retryAfter returns the delay before a failed import is retried.
func retryAfter(failed int, err error) time.Duration {
	if git.LastingLimit(err) != "" {
		return job.Growing(limitRetry, limitRetry)(failed, err)
	}
	return job.Growing(firstRetry, lastRetry)(failed, err)
}

// state is the state of an import.
type state struct {
	// phase is the current phase of git. It is empty while the import waits for its turn.
	phase string
	// err is the error of the last attempt; the next one starts after retry.
	err   error
	retry time.Duration
	// last is the reason why there is no next attempt, although retry has its time. It is empty if there is one.
	last string
}

// wait returns the error of a step that waits for the import, or for what else it is doing.
func (s state) wait(doing string) error {
	switch reached := git.LastingLimit(s.err); {
	case s.retry > 0 && s.last != "":
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "%s: %s (%s)", doing, cmp.Or(reached, s.err.Error()), s.last)
	case s.retry > 0 && reached != "":
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "%s: %s (the next attempt is in a day)", doing, reached)
	case s.retry > 0:
		return frame.WaitingFor(s.retry, v1alpha1.ReasonImportFailed, "%s: %w (Forgeplane tries again)", doing, s.err)
	case s.phase == "":
		return frame.Progressing(progressInterval, v1alpha1.ReasonImporting, "%s", doing)
	default:
		return frame.Progressing(progressInterval, v1alpha1.ReasonImporting, "%s: %s", doing, s.phase)
	}
}

// begin starts the import of a project, unless it is running or its next attempt is not due, and returns its state.
func (i *importer) begin(p *v1alpha1.Project, run importFunc) state {
	project := p.DeepCopy()
	s, _ := i.Begin(p.UID, job.Job{
		Tenant: i.tenant(p),
		Run: func(ctx context.Context, progress func(string)) error {
			return run(ctx, func(p transfer.Progress) { progress(fmt.Sprintf("%s: %d%%", p.Phase, p.Percent)) })
		},
		Ended: func(ctx context.Context) {
			select {
			case i.wake <- event.TypedGenericEvent[*v1alpha1.Project]{Object: project}:
			case <-ctx.Done():
			}
		},
	})
	return state{phase: s.Progress, err: s.Err, retry: s.Retry}
}

// forget ends the import of a project. It reports whether the import has ended.
func (i *importer) forget(uid types.UID) bool { return i.Forget(uid) }
