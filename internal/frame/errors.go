package frame

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// outcome is the result of a step that neither simply succeeds nor simply fails.
type outcome struct {
	kind    kind
	reason  string
	message string
	after   time.Duration
	cause   error
}

type kind int

const (
	// stalled: nothing changes until a user changes the object, or the object that it collides with.
	stalled kind = iota
	// waiting: a watch or a timer will trigger the next reconcile.
	waiting
	// progressing: as waiting, but nothing is wrong.
	progressing
	// settled: nothing is left to do although the object has no effect.
	settled
	// failed: the step is retried with a growing delay.
	failed
	// again: the object is fine, but must be reconciled again later.
	again
)

func (o *outcome) Error() string { return o.message }

func (o *outcome) Unwrap() error { return o.cause }

// Stalled ends a reconcile if nothing will change until a user changes the object, or the object that it collides with. It sets
// Ready=False and Stalled=True with the reason, and does not retry.
func Stalled(reason, format string, args ...any) error {
	return newOutcome(stalled, 0, reason, format, args...)
}

// Waiting ends a reconcile until a watched object changes. It sets Ready=False and Reconciling=True with the reason, and does not retry.
func Waiting(reason, format string, args ...any) error {
	return newOutcome(waiting, 0, reason, format, args...)
}

// WaitingFor is Waiting with another reconcile after d, for what cannot be watched.
func WaitingFor(d time.Duration, reason, format string, args ...any) error {
	return newOutcome(waiting, d, reason, format, args...)
}

// Progressing is WaitingFor for ordinary progress: nothing is wrong, and the event about it is not a warning. With a d of 0, only a watched
// object triggers another reconcile.
func Progressing(d time.Duration, reason, format string, args ...any) error {
	return newOutcome(progressing, d, reason, format, args...)
}

// Settled ends a reconcile of an object that has no effect because its own declaration says so, such as one that has expired. It sets
// Ready=True with the reason, so that no tool waits for the object or takes it for failed.
func Settled(reason, format string, args ...any) error {
	return newOutcome(settled, 0, reason, format, args...)
}

// Failed ends a reconcile and retries it with a growing delay. It sets Ready=False and Reconciling=True with the reason. Every other error
// does the same with the reason Failed.
func Failed(reason, format string, args ...any) error {
	return newOutcome(failed, 0, reason, format, args...)
}

// RequeueAfter does not end the steps, and is not a failure: it schedules another reconcile after d at the latest.
func RequeueAfter(d time.Duration) error { return &outcome{kind: again, after: d} }

// scheduled is the error of a step after an earlier step returned RequeueAfter.
type scheduled struct {
	error
	after time.Duration
}

func (s *scheduled) Unwrap() error { return s.error }

func newOutcome(k kind, after time.Duration, reason, format string, args ...any) error {
	err := fmt.Errorf(format, args...) //nolint:err113 // the message is the caller's, the type is outcome
	return &outcome{kind: k, reason: reason, message: err.Error(), after: after, cause: errors.Unwrap(err)}
}

// IsWaiting reports whether err was created by Waiting, WaitingFor or Progressing.
func IsWaiting(err error) bool { return is(err, waiting, progressing) }

// IsStalled reports whether err was created by Stalled.
func IsStalled(err error) bool { return is(err, stalled) }

// progresses reports whether err was created by Progressing.
func progresses(err error) bool { return is(err, progressing) }

// retried reports whether a reconcile that ended with err is repeated without an event: with a growing delay, or after the delay of err.
func retried(err error) bool {
	var o *outcome
	if !errors.As(err, &o) {
		return err != nil
	}
	return o.kind == failed || o.after > 0
}

// is reports whether err is an outcome of one of the kinds.
func is(err error, kinds ...kind) bool {
	var o *outcome
	return errors.As(err, &o) && slices.Contains(kinds, o.kind)
}

// crowded returns the delay after which to retry a step that found no free slot, or 0 for any other error, including one that a step has
// turned into its own outcome.
func crowded(err error) time.Duration {
	o, busy := (*outcome)(nil), (*fair.Busy)(nil)
	if errors.As(err, &o) || !errors.As(err, &busy) {
		return 0
	}
	return wait.Jitter(busy.RetryAfter, 1)
}

// maxMessage keeps messages readable in kubectl and below the limit of an event (1 KiB).
const maxMessage = 1000

var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s]*@`)

// temporary matches the random part of the names of temporary files: those of Forgeplane, of git, of the blob store and of the registry. Names
// that people choose, such as known-hosts-github of a Secret, are not behind a slash.
var temporary = regexp.MustCompile(
	`(/(?:\.(?:new|probe|tmp)-|forgeplane-archive-|known-hosts-)|tmp_objdir-(?:[a-z]+-)*|tmp_(?:obj|pack|idx|rev|mtimes|midx|bitmap)_)[0-9A-Za-z]+` +
		`|(\.)[0-9a-f-]{6,}\.tmp`)

// Sanitise makes a text safe for a condition or event: it removes credentials from URLs, replaces what differs in the name of a temporary file
// at each attempt, so that attempts that fail in the same way have the same text, and limits the length.
func Sanitise(text string) string {
	return cut(temporary.ReplaceAllString(userinfo.ReplaceAllString(text, "$1"), "${1}${2}*"))
}

// cut shortens a text to maxMessage bytes and an ellipsis.
func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
