package frame

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/forgeplane/forgeplane/internal/fair"
)

// outcome is how a step ends when it does not simply succeed or fail.
type outcome struct {
	kind    kind
	reason  string
	message string
	after   time.Duration
	cause   error
}

type kind int

const (
	// stalled: nothing changes before somebody changes the object, or what it collides with.
	stalled kind = iota
	// waiting: something that is watched, or timed, will bring the object back.
	waiting
	// failed: tried again with a growing delay.
	failed
	// again: the object is fine and is to be looked at again later.
	again
)

func (o *outcome) Error() string { return o.message }

func (o *outcome) Unwrap() error { return o.cause }

// Stalled ends a reconcile: nothing will change before somebody changes the object, or the other object that it
// collides with. It gives Ready=False and Stalled=True with the reason, and no retry.
func Stalled(reason, format string, args ...any) error {
	return newOutcome(stalled, 0, reason, format, args...)
}

// Waiting ends a reconcile until a watched object changes. It gives Ready=False and Reconciling=True with the reason,
// and no retry.
func Waiting(reason, format string, args ...any) error {
	return newOutcome(waiting, 0, reason, format, args...)
}

// WaitingFor is Waiting that also looks again after d, for what cannot be watched.
func WaitingFor(d time.Duration, reason, format string, args ...any) error {
	return newOutcome(waiting, d, reason, format, args...)
}

// Failed ends a reconcile that is tried again with a growing delay. It gives Ready=False and Reconciling=True with the
// reason; every other error does the same with reason Failed.
func Failed(reason, format string, args ...any) error {
	return newOutcome(failed, 0, reason, format, args...)
}

// Again is no failure: the steps go on, and the object is looked at again after d at the latest.
func Again(d time.Duration) error { return &outcome{kind: again, after: d} }

func newOutcome(k kind, after time.Duration, reason, format string, args ...any) error {
	err := fmt.Errorf(format, args...) //nolint:err113 // the message is the caller's, the type is outcome
	return &outcome{kind: k, reason: reason, message: err.Error(), after: after, cause: errors.Unwrap(err)}
}

// IsWaiting reports whether err was made by Waiting or WaitingFor.
func IsWaiting(err error) bool {
	var o *outcome
	return errors.As(err, &o) && o.kind == waiting
}

// crowded returns when to try again a step that found no slot, and 0 for every other end. What a step has found out and worded itself is
// another end.
func crowded(err error) time.Duration {
	o, busy := (*outcome)(nil), (*fair.Busy)(nil)
	if errors.As(err, &o) || !errors.As(err, &busy) {
		return 0
	}
	return wait.Jitter(busy.RetryAfter, 1)
}

// maxMessage keeps a message readable in kubectl and below the limit of an event (1 KiB).
const maxMessage = 1000

var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s]*@`)

// Sanitise makes text fit to be shown in a condition or event: credentials in URLs are cut out and the length is bounded.
func Sanitise(text string) string {
	text = userinfo.ReplaceAllString(text, "$1")
	if len(text) > maxMessage {
		cut := maxMessage
		for cut > 0 && text[cut]&0xC0 == 0x80 {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
