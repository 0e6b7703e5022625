package endpoint

import (
	"context"
	"net/http"
	"time"
)

const unmodifiedSinceHeader = "If-Unmodified-Since"

// Conditional has the handler learn by UnmodifiedSince what the client demands of a record before it is removed. Clients expect it of the
// removals of records that API behaviour, section 1.1, lists, such as labels and badges; the header is ignored where it says nothing, as
// for the revocation of a token or a commit that removes a file.
func (e *Endpoint) Conditional() *Endpoint {
	e.conditional = true
	return e
}

type unmodifiedSinceKey struct{}

// UnmodifiedSince returns the time after which nobody may have changed the record that a request for a Conditional endpoint is
// about; the zero time where the client did not say. If somebody has, the answer is PreconditionFailed.
func UnmodifiedSince(ctx context.Context) time.Time {
	at, _ := ctx.Value(unmodifiedSinceKey{}).(time.Time)
	return at
}

// withCondition returns ctx with the condition of a request. A date that is none is no condition, as HTTP has it. Beside the
// dates of HTTP the API's own are understood, so that a client may send back what it was shown.
func withCondition(ctx context.Context, r *http.Request) context.Context {
	text := r.Header.Get(unmodifiedSinceHeader)
	if text == "" {
		return ctx
	}
	at, err := http.ParseTime(text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, unmodifiedSinceKey{}, at)
}

// PreconditionFailed is 412: the record was changed after UnmodifiedSince.
func PreconditionFailed() *Error {
	return Message(http.StatusPreconditionFailed, "412 Precondition Failed")
}
