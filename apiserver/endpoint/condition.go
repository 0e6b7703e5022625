package endpoint

import (
	"context"
	"net/http"
	"time"
)

const unmodifiedSinceHeader = "If-Unmodified-Since"

// Conditional makes the condition of a request available to the handler through UnmodifiedSince. Clients expect this when they remove the
// records that API behaviour, section 1.1, lists, such as labels and badges. Where that section does not list a removal, such as the
// revocation of a token or a commit that removes a file, the header is ignored.
func (e *Endpoint) Conditional() *Endpoint {
	e.conditional = true
	return e
}

type unmodifiedSinceKey struct{}

// UnmodifiedSince returns the time after which the record of a request to a Conditional endpoint must not have changed, or the zero time if
// the client sent no condition. If the record has changed since, the handler must return PreconditionFailed.
func UnmodifiedSince(ctx context.Context) time.Time {
	at, _ := ctx.Value(unmodifiedSinceKey{}).(time.Time)
	return at
}

// withCondition returns ctx with the condition of a request. A date that cannot be parsed is ignored, as HTTP requires. Dates in the API's
// own format are accepted as well as HTTP dates, so that a client can send back a time that the API returned.
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

// PreconditionFailed returns 412: the record was changed after UnmodifiedSince.
func PreconditionFailed() *Error {
	return Message(http.StatusPreconditionFailed, "412 Precondition Failed")
}
