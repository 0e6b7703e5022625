package project

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/job"
)

// Imports take from seconds to hours, so they run beside the reconciles, a few at once, and fewer of one tenant.
const (
	importers  = 4
	importsOf  = 2
	firstRetry = 10 * time.Second
	lastRetry  = 10 * time.Minute
	// limitRetry is for an import that the server does not allow, and that would most likely end in the same way again.
	limitRetry = 24 * time.Hour
)

// importFunc imports one repository and tells how far it is.
type importFunc func(ctx context.Context, progress func(git.Progress)) error

// importer runs imports. It is started by the manager.
type importer struct {
	*job.Pool[types.UID]

	// tenant says whom the import of a project is counted for.
	tenant func(*v1alpha1.Project) fair.Key
	// wake gets the project of each import that has ended.
	wake chan event.TypedGenericEvent[*v1alpha1.Project]
}

func newImporter(clk clock.PassiveClock, tenant func(*v1alpha1.Project) fair.Key) *importer {
	return &importer{
		Pool: job.New[types.UID](job.Options{
			Name: "imports", Limits: fair.Limits{Total: importers, Share: importsOf}, Clock: clk, Retry: retryAfter,
		}),
		tenant: tenant, wake: make(chan event.TypedGenericEvent[*v1alpha1.Project]),
	}
}

// retryAfter is how long it takes until an import that has failed is tried again.
func retryAfter(failed int, err error) time.Duration {
	if git.LastingLimit(err) != "" {
		return job.Growing(limitRetry, limitRetry)(failed, err)
	}
	return job.Growing(firstRetry, lastRetry)(failed, err)
}

// state is how far an import is.
type state struct {
	// phase is what git is doing; empty while the import waits for its turn.
	phase string
	// err is why the last attempt failed; the next one starts after retry.
	err   error
	retry time.Duration
}

// begin starts the import of a project, unless it is running or its next attempt is not due, and says how far it is.
func (i *importer) begin(p *v1alpha1.Project, run importFunc) state {
	project := p.DeepCopy()
	s, _ := i.Begin(p.UID, job.Job{
		Tenant: i.tenant(p),
		Run: func(ctx context.Context, progress func(string)) error {
			return run(ctx, func(p git.Progress) { progress(fmt.Sprintf("%s: %d%%", p.Phase, p.Percent)) })
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

// forget ends the import of a project that is going away; it reports whether nothing of it runs any more.
func (i *importer) forget(uid types.UID) bool { return i.Forget(uid) }
