package remotemirror

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/job"
)

// The delays before retrying a failed push.
const (
	firstRetry = 10 * time.Second
	lastRetry  = time.Hour
)

// maxNamed is the maximum number of refs that an error names.
const maxNamed = 20

// maxSync is the number of characters of the annotation that count.
const maxSync = 64

// requested returns the sync that a user has requested.
func requested(m *v1alpha1.RemoteMirror) string {
	value := m.Annotations[v1alpha1.AnnotationSync]
	return strings.ToValidUTF8(value[:min(len(value), maxSync)], "")
}

// due reports whether a mirror that is not pushing must push.
func due(m *v1alpha1.RemoteMirror, want goal, now time.Time) bool {
	s := &m.Status
	fresh := s.PushedChecksum != want.refs || s.PushedRules != want.rules
	switch {
	case requested(m) != "" && requested(m) != s.HandledSync:
		return true
	case s.UpdateStatus == v1alpha1.MirrorStarted, s.UpdateStatus == v1alpha1.MirrorToRetry:
		return true // the process that pushed has ended before it finished
	case s.NextAttemptAt != nil && !now.Before(s.NextAttemptAt.Time):
		return true
	case s.ObservedGeneration != m.Generation && s.LastError != "":
		return true // the cause of the refusal may be gone
	default:
		return fresh && s.Attempts == 0
	}
}

// hasten brings the next attempt forward if there is something that the last attempt did not try: a target that is available again need not
// wait. A target that does not answer is tried at most once per firstRetry, however much changes.
func hasten(m *v1alpha1.RemoteMirror, want goal) {
	s := &m.Status
	if s.Attempts == 0 || s.NextAttemptAt == nil || s.LastUpdateAt == nil || s.TriedChecksum == want.refs {
		return
	}
	if soon := moment(s.LastUpdateAt.Add(firstRetry)); soon.Before(s.NextAttemptAt) {
		s.NextAttemptAt = soon
	}
}

// conclude sets the result of a push in the status.
func conclude(m *v1alpha1.RemoteMirror, r report) {
	s := &m.Status
	s.UpdateStatus, s.LastError, s.NextAttemptAt = v1alpha1.MirrorFinished, "", nil
	s.LastUpdateStartedAt, s.LastUpdateAt, s.TriedChecksum = moment(r.started), moment(r.ended), r.goal.refs
	switch {
	case r.err != nil:
		retry := job.Growing(firstRetry, lastRetry)(int(s.Attempts), r.err)
		s.UpdateStatus, s.LastError = v1alpha1.MirrorFailed, frame.Sanitise(words(r.err))
		s.NextAttemptAt = moment(r.ended.Add(retry))
		s.Attempts++
		return
	case len(r.result.Refused) > 0:
		// Everything that could be pushed was. A user must resolve the rest there or here.
		s.UpdateStatus, s.LastError = v1alpha1.MirrorFailed, frame.Sanitise(refusals(r.result.Refused))
		s.NextAttemptAt = moment(r.ended.Add(job.Growing(lastRetry, lastRetry)(0, nil)))
	default:
		s.LastSuccessfulUpdateAt = moment(r.ended)
	}
	s.Attempts = 0
	s.PushedChecksum, s.PushedRules = r.goal.refs, r.goal.rules
}

func moment(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }

// words returns an error for users, in place of git's own words.
func words(err error) string {
	switch {
	case errors.Is(err, transfer.ErrCredentials):
		return "the target does not accept the credentials, or requires credentials"
	case errors.Is(err, transfer.ErrTimeout):
		return "the push took longer than allowed"
	case git.OutOfReach(err):
		return git.Unavailable
	}
	failed := (*git.Error)(nil)
	if errors.As(err, &failed) && failed.Stderr != "" {
		return strings.Join(strings.Split(failed.Stderr, "\n"), "; ")
	}
	return err.Error()
}

// refusals names the refs that were refused.
func refusals(all []transfer.RefusedRef) string {
	var diverged, refused []string
	for _, r := range all {
		if r.Diverged {
			diverged = append(diverged, r.Name)
		} else {
			refused = append(refused, fmt.Sprintf("%s (%s)", r.Name, r.Reason))
		}
	}
	var parts []string
	if len(diverged) > 0 {
		parts = append(parts, "these refs have diverged and stay unchanged on the target: "+some(diverged))
	}
	if len(refused) > 0 {
		parts = append(parts, "the target refuses these refs: "+some(refused))
	}
	return strings.Join(parts, "; ")
}

func some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// refuse sets the reason why no push begins, unless the project or group does not exist yet: the mirror may have been created first. A
// refused mirror has no next attempt.
func refuse(m *v1alpha1.RemoteMirror, err error) {
	if errors.Is(err, catalog.ErrNotFound) {
		return
	}
	s := &m.Status
	s.UpdateStatus, s.LastError, s.NextAttemptAt = v1alpha1.MirrorFailed, frame.Sanitise(err.Error()), nil
}

// admit resumes pushes of a mirror that was refused before.
func admit(m *v1alpha1.RemoteMirror) {
	if s := &m.Status; s.LastError != "" && s.NextAttemptAt == nil {
		s.UpdateStatus, s.LastError = v1alpha1.MirrorToRetry, ""
	}
}

// show sets the current activity of the mirror in the status.
func show(m *v1alpha1.RemoteMirror, at report) {
	s := &m.Status
	switch {
	case at.phase == pushing:
		s.UpdateStatus, s.LastUpdateStartedAt = v1alpha1.MirrorStarted, moment(at.started)
	case at.phase == queued && s.UpdateStatus == v1alpha1.MirrorStarted:
		s.UpdateStatus = v1alpha1.MirrorToRetry
	}
}

// verdict returns the outcome of the reconcile. It depends on the last push, even if another one is running.
func verdict(m *v1alpha1.RemoteMirror, at report, now time.Time) error {
	s := &m.Status
	var left time.Duration
	if s.NextAttemptAt != nil && at.phase == idle {
		left = max(s.NextAttemptAt.Sub(now), time.Second)
	}
	switch {
	case s.LastError != "" && s.Attempts > 0:
		return frame.WaitingFor(left, v1alpha1.ReasonPushFailed, "%s", s.LastError)
	case s.LastError != "":
		return frame.WaitingFor(left, v1alpha1.ReasonPushIncomplete, "%s", s.LastError)
	case s.LastSuccessfulUpdateAt == nil:
		return frame.Progressing(0, v1alpha1.ReasonProgressing, "the first push is in progress")
	default:
		return nil
	}
}
