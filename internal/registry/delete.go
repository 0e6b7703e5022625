package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/sweep"
)

// DeletionQueue is the name of the queue whose tasks Schedule adds and Registry.Delete runs.
const DeletionQueue = "container-repository-deletions"

// Tasks keeps the work of deleting repositories; a job.Queue.
type Tasks interface {
	Add(ctx context.Context, t job.Task) error
}

// deletion is the payload of a task.
type deletion struct {
	ID int64 `json:"id"`
}

// Schedule has a repository deleted in the background, with a slot of a tenant. It can be repeated.
func Schedule(ctx context.Context, records *record.Store, tasks Tasks, r record.Repository, tenant fair.Key) error {
	payload, err := json.Marshal(deletion{r.ID})
	if err != nil {
		return fmt.Errorf("scheduling the deletion of container repository %d: %w", r.ID, err)
	}
	// The task comes first: without it, a repository would stay as it is, and a task without a mark is still carried out.
	if err := tasks.Add(ctx, job.Task{Key: strconv.FormatInt(r.ID, 10), Tenant: tenant, Payload: payload}); err != nil {
		return err
	}
	err = records.Removing(ctx, r.ID, record.DeleteScheduled)
	if errors.Is(err, record.ErrDeleted) || errors.Is(err, record.ErrNotFound) {
		return nil // the deletion is further already
	}
	return err
}

// Delete deletes the repository of a task. It is the Run of the queue. Another process can repeat it from any point.
func (r *Registry) Delete(ctx context.Context, a job.Attempt, _ func(string)) error {
	var work deletion
	if err := json.Unmarshal(a.Payload, &work); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	images, err := r.Records.Get(ctx, work.ID)
	if err == nil {
		err = r.Records.Removing(ctx, work.ID, record.DeleteOngoing)
	}
	if errors.Is(err, record.ErrNotFound) {
		return nil // an earlier attempt has done it
	}
	if err != nil {
		return err
	}
	if err := r.Remove(ctx, images); err != nil {
		return err
	}
	return r.Records.Remove(ctx, work.ID)
}

// Leftovers returns the repositories of projects, for a sweep.Sweeper. The repositories of projects that are gone are deleted in the background.
func Leftovers(records *record.Store, tasks Tasks) sweep.Rows {
	return records.Projects(func(ctx context.Context, of record.Repository) error {
		return Schedule(ctx, records, tasks, of, fair.Key{})
	})
}
