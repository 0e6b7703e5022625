package mergecheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/change"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/protection"
)

// QueueName is the name of the queue of checks.
const QueueName = "merge-request-checks"

// Watcher checks the open merge requests of branches that have moved, in the background, and finds those that a push has merged. It can miss
// events: those who read a merge request call Refresh.
type Watcher struct {
	*Checker
	tasks interface {
		Add(context.Context, job.Task) error
	}
}

// NewWatcher returns a watcher that adds a task for each check. The queue must run Check.
func NewWatcher(c *Checker, tasks interface {
	Add(context.Context, job.Task) error
}) *Watcher {
	return &Watcher{c, tasks}
}

// Written adds the tasks for a write of refs.
func (w *Watcher) Written(ctx context.Context, e change.Event) error {
	moved := map[string]update.Ref{}
	for _, u := range e.Updates {
		if name, ok := protection.Branch(u.Name); ok {
			moved[name] = u
		}
	}
	if len(moved) == 0 {
		return nil
	}
	p, err := catalog.Get[*v1alpha1.Project](ctx, w.catalog, e.Project.Namespace, e.Project.Name)
	if err != nil {
		return catalog.IgnoreNotFound(err)
	}
	found, err := w.stores.MergeRequests.OfBranches(ctx, p.UID, slices.Collect(maps.Keys(moved)))
	merged, failed := w.merged(ctx, p, moved, found)
	err = errors.Join(err, failed)
	for _, m := range found {
		t := job.Task{Key: strconv.FormatInt(m.ID, 10), Tenant: w.repositories.Tenant(p)}
		if head, ok := merged[m.ID]; ok {
			u := moved[m.TargetBranch]
			t.Key += " " + u.New // a later push must not replace the one that has merged the branches
			payload, failed := json.Marshal(push{Branch: m.TargetBranch, Head: head, Old: u.Old, By: e.By})
			t.Payload, err = payload, errors.Join(err, failed)
		}
		err = errors.Join(err, w.tasks.Add(ctx, t))
	}
	return err
}

// merged returns the heads of the merge requests that a push to a project may have merged, by the ids of the merge requests: the push has brought the
// heads of their source branches to their target branches. All other merge requests need the same check after each push, and so only one task.
func (w *Watcher) merged(
	ctx context.Context, p *v1alpha1.Project, moved map[string]update.Ref, of []mergerequest.MergeRequest,
) (found map[int64]string, err error) {
	of = slices.DeleteFunc(slices.Clone(of), func(m mergerequest.MergeRequest) bool {
		u, ok := moved[m.TargetBranch]
		return !ok || m.In.UID != p.UID || u.Creates() || u.Deletes()
	})
	sources, err := w.sources(ctx, of)
	into := map[string]map[int64]string{}
	for _, m := range of {
		head := sources[m.ID]
		if source, ok := moved[m.SourceBranch]; ok && m.Source.UID == p.UID {
			head = source.New
		}
		if strings.Trim(head, "0") == "" { // the branch does not exist
			head = m.Head
		}
		if into[m.TargetBranch] == nil {
			into[m.TargetBranch] = map[int64]string{}
		}
		into[m.TargetBranch][m.ID] = head
	}
	found = map[int64]string{}
	for branch, heads := range into {
		arrived, failed := w.arrived(ctx, p, moved[branch], slices.Collect(maps.Values(heads)))
		err = errors.Join(err, failed)
		for id, head := range heads {
			if failed != nil || arrived[head] {
				found[id] = head
			}
		}
	}
	return found, err
}

// arrived returns the heads that an update has brought to a branch of a project.
func (w *Watcher) arrived(ctx context.Context, p *v1alpha1.Project, u update.Ref, heads []string) (map[string]bool, error) {
	r, err := w.repositories.Content(ctx, p)
	if err != nil {
		return nil, err
	}
	return history.Arrived(ctx, r, u.Old, u.New, heads...)
}

// sources returns the heads of the source branches of merge requests that exist, by the ids of the merge requests.
func (c *Checker) sources(ctx context.Context, of []mergerequest.MergeRequest) (found map[int64]string, err error) {
	projects := map[database.Subject][]mergerequest.MergeRequest{}
	for _, m := range of {
		if object.CheckRefName(object.BranchPrefix+m.SourceBranch) == nil {
			projects[m.Source] = append(projects[m.Source], m)
		}
	}
	found = map[int64]string{}
	for in, some := range projects {
		r, failed := c.repository(ctx, in)
		if err = errors.Join(err, failed); failed != nil || r == nil {
			continue
		}
		names := make([]string, len(some))
		for i, m := range some {
			names[i] = object.BranchPrefix + m.SourceBranch
		}
		ids, failed := heads(ctx, r, names...)
		err = errors.Join(err, failed)
		for i, id := range ids {
			found[some[i].ID] = id
		}
	}
	return found, err
}

// resuming is the end of the key of the task that finishes or undoes a merge that was interrupted.
const resuming = "resume"

// Resume returns the task that finishes or undoes a merge if it is interrupted, and the time after the lock of the merge request at which it is due.
func Resume(id int64, tenant fair.Key) (t job.Task, delay time.Duration) {
	return job.Task{Key: fmt.Sprintf("%d %s", id, resuming), Tenant: tenant}, interrupted + time.Second
}

// Check runs a task of the queue.
func (c *Checker) Check(ctx context.Context, a job.Attempt, _ func(string)) error {
	key, what, _ := strings.Cut(a.Key, " ")
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the id of a merge request: %w", err)
	}
	m, err := c.stores.MergeRequests.WithID(ctx, id)
	switch {
	case err == nil && what == resuming:
		err = c.resume(ctx, m)
	case err == nil:
		err = c.run(ctx, m, a.Payload)
	}
	if errors.Is(err, mergerequest.ErrNotFound) {
		return nil
	}
	return err
}

// resume is Check for a merge that may have been interrupted. If it cannot be decided yet, the task is tried again.
func (c *Checker) resume(ctx context.Context, m mergerequest.MergeRequest) error {
	now, err := c.Refresh(ctx, m)
	if err == nil && now.State == mergerequest.Locked {
		err = mergerequest.ErrLocked
	}
	return err
}

// run is Check for a merge request. payload is a push, or empty.
func (c *Checker) run(ctx context.Context, m mergerequest.MergeRequest, payload []byte) error {
	if len(payload) > 0 {
		var p push
		if err := json.Unmarshal(payload, &p); err != nil {
			return fmt.Errorf("reading a push: %w", err)
		}
		if merged, err := c.pushed(ctx, m, p); merged || err != nil {
			return err
		}
	}
	_, err := c.Refresh(ctx, m)
	return err
}
