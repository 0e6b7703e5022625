package registrycleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
	"github.com/forgeplane/forgeplane/internal/timetable"
)

const (
	// firstRetry and lastRetry are the delays before retrying a failed attempt.
	firstRetry, lastRetry = 10 * time.Second, 5 * time.Minute
	// maxAttempts is the maximum number of attempts to delete tags that fail while others can be deleted. A registry that does not answer is
	// asked again for ever.
	maxAttempts = 10
	// punctual is the maximum delay of a scheduled run that counts as punctual, and glance the shortest wait for a repository.
	punctual, glance = time.Minute, time.Minute
)

// unavailable says that the registry fails. Where the images are is not for tenants, so the log has the cause.
const unavailable = "the images cannot be read or changed at the moment"

func moment(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }

// plan shows when the next run of the schedule is.
func (c *Controller) plan(m *v1alpha1.RegistryCleanup, s *timetable.Schedule) {
	switch {
	case s == nil:
		m.Status.NextRunAt = nil
	case m.Status.NextRunAt == nil, !s.Plans(m.Status.NextRunAt.Time, c.options.Clock.Now()):
		m.Status.NextRunAt = moment(s.Next(c.options.Clock.Now()))
	}
}

// due reports whether a run begins now. Of several times of a schedule that were missed, one counts.
func (c *Controller) due(m *v1alpha1.RegistryCleanup) bool {
	if next := m.Status.NextRunAt; next != nil {
		return !c.options.Clock.Now().Before(next.Time)
	}
	last := m.Status.LastRun
	return last == nil || last.Policy != cleanup.Checksum(&m.Spec) || last.State == v1alpha1.RegistryCleanupStopped
}

// wait waits for the next run of the schedule.
func (c *Controller) wait(m *v1alpha1.RegistryCleanup) error {
	if m.Status.NextRunAt == nil {
		return nil
	}
	return frame.RequeueAfter(max(m.Status.NextRunAt.Sub(c.options.Clock.Now()), time.Second))
}

// begin begins a run.
func (c *Controller) begin(m *v1alpha1.RegistryCleanup, s *timetable.Schedule) {
	now, number := c.options.Clock.Now(), int64(1)
	if m.Status.LastRun != nil {
		number += m.Status.LastRun.Number
	}
	due := moment(now)
	if next := m.Status.NextRunAt; next != nil && now.Sub(next.Time) < punctual {
		due = next
	}
	m.Status.LastRun = &v1alpha1.RegistryCleanupRun{
		Number: number, State: v1alpha1.RegistryCleanupWaiting, Policy: cleanup.Checksum(&m.Spec), DryRun: m.Spec.DryRun, StartedAt: due,
	}
	m.Status.Attempts, m.Status.NextAttemptAt, m.Status.LastError = 0, nil, ""
	if s != nil {
		m.Status.NextRunAt = moment(s.Next(now))
	}
}

// end puts the run into a final state.
func (c *Controller) end(m *v1alpha1.RegistryCleanup, state v1alpha1.RegistryCleanupState, why string) {
	run := m.Status.LastRun
	run.State, run.FinishedAt = state, moment(c.options.Clock.Now())
	m.Status.Attempts, m.Status.NextAttemptAt, m.Status.LastError = 0, nil, why
	c.meters.end(run)
}

// work does the work of the run, and reports how it goes.
func (c *Controller) work(ctx context.Context, m *v1alpha1.RegistryCleanup, r ready) error {
	run := m.Status.LastRun
	at := c.pool.Look(m.UID)
	switch at.Phase {
	case job.Waiting:
		return frame.Progressing(0, v1alpha1.ReasonProgressing, "waiting for other cleanups to end")
	case job.Running:
		_ = c.show(m) // the end of the attempt reports tags that fail
		run.State, m.Status.NextAttemptAt, m.Status.LastError = v1alpha1.RegistryCleanupRunning, nil, ""
		return frame.Progressing(c.options.Interval, v1alpha1.ReasonProgressing, "%d of %d tags are deleted so far", run.Deleted, run.Selected)
	case job.Done:
		if errors.Is(at.Err, context.Canceled) {
			return frame.Progressing(c.soon(), v1alpha1.ReasonProgressing, "the run goes on soon")
		}
		p := c.show(m)
		if p.Failure != nil {
			log.FromContext(ctx).Error(p.Failure, "Failed to delete a tag of a container repository")
		}
		return c.conclusion(ctx, m, at.Err, problems(p))
	}
	if s := m.Status; s.NextAttemptAt != nil && s.NextAttemptAt.After(c.options.Clock.Now()) {
		return c.pause(m)
	}
	c.pool.begin(m, c.attempt(m, r))
	return frame.Progressing(c.options.Interval, v1alpha1.ReasonProgressing, "the run is about to begin")
}

// attempt returns an attempt of the run.
func (c *Controller) attempt(m *v1alpha1.RegistryCleanup, r ready) attempt {
	run := cleanup.Run{
		ID: cleanup.RunID(m.UID, m.Status.LastRun.Number), Due: m.Status.LastRun.StartedAt.Time,
		Project: r.project.UID, Repository: m.Spec.Repository, Policy: r.policy, DryRun: m.Spec.DryRun,
	}
	declared, project := m.DeepCopy(), m.Status.TargetPath
	return func(ctx context.Context, report func(cleanup.Progress)) (cleanup.Progress, error) {
		run := run
		run.Deleted = func(repository string, tags []string) {
			event := audit.Event{Action: "cleanup"}
			for _, tag := range tags {
				event.Objects = append(event.Objects, audit.Object{
					Verb: "delete", Kind: audit.ContainerTag, Name: registry.PathOf(project, repository) + ":" + tag,
				})
			}
			c.options.Audit.Tell(audit.For(ctx, declared), event)
		}
		count := c.meters.attempt()
		p, err := c.cleaner.Clean(ctx, run, func(p cleanup.Progress) { count(p); report(p) })
		count(p)
		return p, err
	}
}

// show writes into the status what the last attempt in this process has reported, and returns it.
func (c *Controller) show(m *v1alpha1.RegistryCleanup) cleanup.Progress {
	p, known := c.pool.reported(m.UID)
	if !known {
		return p
	}
	run := m.Status.LastRun
	run.Repositories, run.Selected, run.Deleted, run.Kept, run.Failed, run.Tags = p.Repositories, p.Selected, p.Deleted, p.Kept, p.Failed, p.Tags
	return p
}

// problems says what an attempt could not do; an empty text if it could do everything.
func problems(p cleanup.Progress) string {
	var all []string
	if p.Failed > 0 {
		all = append(all, fmt.Sprintf("%d tags could not be deleted", p.Failed))
	}
	if p.Unreadable > 0 {
		all = append(all, fmt.Sprintf("%d container repositories could not be read", p.Unreadable))
	}
	return strings.Join(all, ", and ")
}

// conclusion decides how a run goes on whose attempt has ended with an error, or else with problems.
func (c *Controller) conclusion(ctx context.Context, m *v1alpha1.RegistryCleanup, err error, failed string) error {
	s, run, now := &m.Status, m.Status.LastRun, c.options.Clock.Now()
	c.pool.forget(m.UID)
	held := (*cleanup.HeldError)(nil)
	switch {
	case errors.As(err, &held):
		run.State, s.LastError = v1alpha1.RegistryCleanupWaiting, ""
		until := held.Until.Add(time.Second) // the status has no fractions of seconds
		if soon := now.Add(glance); until.Before(soon) {
			until = soon
		}
		s.NextAttemptAt = moment(until)
		return c.pause(m)
	case err != nil:
		log.FromContext(ctx).Error(err, "Failed to clean up container repositories")
		failed = unavailable
	}
	switch {
	case failed == "":
		c.end(m, v1alpha1.RegistryCleanupFinished, "")
	case err == nil && s.Attempts+1 >= maxAttempts:
		c.end(m, v1alpha1.RegistryCleanupIncomplete, failed)
	default:
		run.State, s.LastError = v1alpha1.RegistryCleanupWaiting, failed
		s.NextAttemptAt = moment(now.Add(job.Growing(firstRetry, lastRetry)(int(s.Attempts), err)))
		s.Attempts++
		return c.pause(m)
	}
	return frame.RequeueAfter(c.soon())
}

// soon is the time until a run that begins, goes on or has ended is looked at again.
func (c *Controller) soon() time.Duration { return c.options.Interval / 2 }

// pause waits for the next attempt.
func (c *Controller) pause(m *v1alpha1.RegistryCleanup) error {
	s := &m.Status
	left := max(s.NextAttemptAt.Sub(c.options.Clock.Now()), time.Second)
	switch {
	case s.LastError == "":
		return frame.Progressing(left, v1alpha1.ReasonProgressing, "waiting until %s: a container repository can be cleaned up once an hour",
			s.NextAttemptAt.UTC().Format(time.RFC3339))
	case s.LastError != unavailable:
		return frame.WaitingFor(left, v1alpha1.ReasonCleanupIncomplete, "%s; the next attempt is at %s", s.LastError, s.NextAttemptAt.UTC().Format(time.RFC3339))
	default:
		return frame.WaitingFor(left, v1alpha1.ReasonRegistryUnavailable, "%s; the next attempt is at %s", s.LastError, s.NextAttemptAt.UTC().Format(time.RFC3339))
	}
}
