package mergerequests

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/feature"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// recheck queues checks of the open merge requests among some. The check itself finds out whether a branch has moved since the last one. With the
// feature restrict_merge_status_recheck, it leaves out the merge requests of projects in which the caller is not a Developer.
func (f *Family) recheck(ctx context.Context, s auth.Subject, in places, some []mergerequest.MergeRequest) error {
	restricted, err := f.Features.Enabled(ctx, feature.RestrictMergeStatusRecheck)
	if err != nil {
		return err
	}
	var tasks []job.Task
	for _, m := range some {
		scope := in.scopes[m.In.UID]
		if m.State != mergerequest.Opened {
			continue
		}
		if restricted {
			access, err := f.Guard.Access(ctx, s.Caller, scope)
			if err != nil {
				return err
			}
			if access.Role < role.Developer {
				continue
			}
		}
		tasks = append(tasks, job.Task{Key: fmt.Sprint(m.ID), Tenant: f.Repositories.Tenant(scope.Project)})
	}
	if len(tasks) == 0 {
		return nil
	}
	slices.SortFunc(tasks, func(a, b job.Task) int { return strings.Compare(a.Key, b.Key) }) // others that add the same tasks wait
	err = f.Activity.Database.Atomically(ctx, "queueing checks of merge requests", func(ctx context.Context, _ bun.IDB) error {
		for _, t := range tasks {
			if err := f.checks.Add(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to queue checks of merge requests") // the list is right without them
	}
	return ctx.Err()
}
