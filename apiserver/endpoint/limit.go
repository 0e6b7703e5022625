package endpoint

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Limited refuses further requests of one caller about one project or group after perMinute requests in a minute, where limits are
// enforced. The refusal names what was requested, such as "archive".
func (e *Endpoint) Limited(perMinute int, what string) *Endpoint {
	e.perMinute, e.limited = perMinute, what
	return e
}

// Limit returns the limit that Limited set; 0 means no limit.
func (e *Endpoint) Limit() (perMinute int, what string) { return e.perMinute, e.limited }

// By says which requests a limit counts together.
type By string

const (
	// ByAddress counts requests by client address, regardless of the caller.
	ByAddress By = "address"
	// ByCredential counts requests by credential, or by caller if a request has no credential.
	ByCredential By = "credential"
)

// LimitBy is a limit of requests per minute.
type LimitBy struct {
	By        By
	PerMinute int
	// The name of the limited resource. Endpoints with the same What share a count.
	What string
}

// LimitedBy refuses further requests from one address or with one credential after perMinute requests in a minute, where limits are
// enforced. Every request counts, whatever it is about and whether or not it succeeds. The refusal names what was requested, such as
// "trigger".
func (e *Endpoint) LimitedBy(by By, perMinute int, what string) *Endpoint {
	e.limitedBy = append(e.limitedBy, LimitBy{by, perMinute, what})
	return e
}

// LimitsBy returns the limits that LimitedBy set.
func (e *Endpoint) LimitsBy() []LimitBy { return e.limitedBy }

// limits adds the limits of the endpoint to its Operation Object.
func (e *Endpoint) limits(op object) {
	limit := func(perMinute int) object { return object{"requests": perMinute, "seconds": 60} }
	if e.perMinute > 0 {
		op["x-rate-limit"] = limit(e.perMinute)
	}
	for _, l := range e.limitedBy {
		op["x-rate-limit-by-"+string(l.By)] = limit(l.PerMinute)
	}
}

// MaxBody replaces the maximum size of a body in bytes. The default is 4 MiB, or 8 KiB for an endpoint that only reads. The whole body is
// held in memory, in several copies, so a body of more than 64 KiB waits for Options.Memory.
func (e *Endpoint) MaxBody(bytes int64) *Endpoint {
	e.maxBody = bytes
	return e
}

// BodyLimit returns the maximum size of a body as it is sent, in bytes.
func (e *Endpoint) BodyLimit() int64 { return e.most() }

// TooManyRequests returns 429 for an endpoint that is Limited. The client can retry after the given time.
func TooManyRequests(what string, wait time.Duration) *Error {
	return &Error{
		Status: http.StatusTooManyRequests,
		body:   message{Message: map[string]string{"error": fmt.Sprintf("This %s has been requested too many times. Try again later.", what)}},
		Header: retryAfter(wait),
	}
}

// Throttled returns 429 for a caller who makes too many requests, whatever they are about. The client can retry after the given time.
func Throttled(wait time.Duration) *Error {
	return &Error{Status: http.StatusTooManyRequests, body: text("Retry later\n"), Header: retryAfter(wait)}
}

// TooManyAtOnce returns 429 with the given text for a caller who already has the maximum number of concurrent requests.
func TooManyAtOnce(text string, wait time.Duration) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, body: message{Message: map[string]string{"error": text}}, Header: retryAfter(wait),
	}
}

// Busy returns 503 for a request that did not get its turn. The client can retry after the given time.
func Busy(wait time.Duration) *Error {
	return BusyWith("The server is busy. Please try again later.", wait)
}

// BusyWith returns Busy with the given text.
func BusyWith(text string, wait time.Duration) *Error {
	busy := Unavailable(text)
	busy.Header = retryAfter(wait)
	return busy
}

// busyRetry is the time after which a client should retry if no better estimate is known.
const busyRetry = 10 * time.Second

// Unavailable returns 503 with a text, for something that may be available in ten seconds.
func Unavailable(text string) *Error {
	e := Message(http.StatusServiceUnavailable, "%s", text)
	e.Header = retryAfter(busyRetry)
	return e
}

// retryAfter returns a Retry-After header, in whole seconds.
func retryAfter(wait time.Duration) http.Header {
	return http.Header{"Retry-After": {strconv.Itoa(int((wait + time.Second - 1) / time.Second))}}
}
