package endpoint

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Limited refuses more than so many requests a minute of one caller about one project or group, where limits are enforced.
// Refusals name what was asked for, as in "archive".
func (e *Endpoint) Limited(perMinute int, what string) *Endpoint {
	e.perMinute, e.limited = perMinute, what
	return e
}

// Limit is what Limited has set; 0 for no limit.
func (e *Endpoint) Limit() (perMinute int, what string) { return e.perMinute, e.limited }

// By is whose requests a limit counts together.
type By string

const (
	// ByAddress counts what comes from an address, whoever calls.
	ByAddress By = "address"
	// ByCredential counts what comes with a credential, and by who calls where there is none.
	ByCredential By = "credential"
)

// LimitBy is a limit of requests a minute.
type LimitBy struct {
	By        By
	PerMinute int
	// What is limited. Endpoints that are limited for the same share the count.
	What string
}

// LimitedBy refuses more than so many requests a minute of one address or credential, whatever they are about and be they served or not,
// where limits are enforced. Refusals name what was asked for, as in "trigger".
func (e *Endpoint) LimitedBy(by By, perMinute int, what string) *Endpoint {
	e.limitedBy = append(e.limitedBy, LimitBy{by, perMinute, what})
	return e
}

// LimitsBy are those that LimitedBy has set.
func (e *Endpoint) LimitsBy() []LimitBy { return e.limitedBy }

// limits are those of the endpoint for the OpenAPI document.
func (e *Endpoint) limits(op object) {
	limit := func(perMinute int) object { return object{"requests": perMinute, "seconds": 60} }
	if e.perMinute > 0 {
		op["x-rate-limit"] = limit(e.perMinute)
	}
	for _, l := range e.limitedBy {
		op["x-rate-limit-by-"+string(l.By)] = limit(l.PerMinute)
	}
}

// MaxBody replaces how many bytes a body may have: 4 MiB, and 8 KiB where something is only read. It is held in memory as a whole, some
// times over, so those of more than 64 KiB wait for Options.Memory.
func (e *Endpoint) MaxBody(bytes int64) *Endpoint {
	e.maxBody = bytes
	return e
}

// BodyLimit is how many bytes a body may have as it is sent.
func (e *Endpoint) BodyLimit() int64 { return e.most() }

// TooManyRequests is 429 for an endpoint that is Limited. It ends after the given time.
func TooManyRequests(what string, wait time.Duration) *Error {
	return &Error{
		Status: http.StatusTooManyRequests,
		Body:   message{map[string]string{"error": fmt.Sprintf("This %s has been requested too many times. Try again later.", what)}},
		Header: retryAfter(wait),
	}
}

// Throttled is 429 for a caller who has called too often, whatever it was about. It ends after the given time.
func Throttled(wait time.Duration) *Error {
	return &Error{Status: http.StatusTooManyRequests, Body: text("Retry later\n"), Header: retryAfter(wait)}
}

// TooManyAtOnce is 429 for a caller who has as many requests running as one caller may have. The text says so.
func TooManyAtOnce(text string, wait time.Duration) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Body: message{map[string]string{"error": text}}, Header: retryAfter(wait),
	}
}

// Busy is 503 for what has not had its turn. A client that comes again after the given time may be luckier.
func Busy(wait time.Duration) *Error {
	return BusyWith("The server is busy. Please try again later.", wait)
}

// BusyWith is Busy with a text of its own.
func BusyWith(text string, wait time.Duration) *Error {
	busy := Unavailable(text)
	busy.Header = retryAfter(wait)
	return busy
}

// busyRetry is when to come again where nothing else is known.
const busyRetry = 10 * time.Second

// Unavailable is 503 with a text, for what may be there in ten seconds.
func Unavailable(text string) *Error {
	e := Message(http.StatusServiceUnavailable, "%s", text)
	e.Header = retryAfter(busyRetry)
	return e
}

// retryAfter is in whole seconds.
func retryAfter(wait time.Duration) http.Header {
	return http.Header{"Retry-After": {strconv.Itoa(int((wait + time.Second - 1) / time.Second))}}
}

// text is a body that is no JSON.
type text string
