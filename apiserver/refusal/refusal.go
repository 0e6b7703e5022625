// Package refusal says to clients of the REST API why something was not written.
package refusal

import (
	"errors"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/quota"
)

// Of returns the answer for an error of declare.Writer, and other errors as they are. What was to be written is named as
// endpoint.NotFound names it, which is the answer when it is gone. What the schema refuses is 422: a family that has words of its own
// for a value checks it before.
func Of(err error, what string) error {
	var invalid *declare.InvalidError
	var forbidden *declare.RefusedError
	if refused := tooMany(err); refused != nil {
		return refused
	}
	switch {
	case errors.As(err, &invalid):
		return endpoint.Unprocessable(invalid.Reason)
	case errors.As(err, &forbidden):
		return endpoint.Forbidden(forbidden.Error())
	case errors.Is(err, declare.ErrGone):
		return endpoint.NotFound(what)
	case errors.Is(err, declare.ErrContended):
		return endpoint.Conflict("409 Conflict - " + err.Error())
	case errors.Is(err, declare.ErrChanged):
		return endpoint.PreconditionFailed()
	default:
		return err
	}
}

// Anyway returns the answer to an error that has the same one whatever was asked for: that there was no time for it, or that there is as
// much as there may be. It returns nil for other errors.
func Anyway(err error) *endpoint.Error {
	if busy := Busy(err); busy != nil {
		return busy
	}
	return tooMany(err)
}

// tooMany returns the answer to an error that says that there is as much as there may be: 403, with the sentence that names the limit. It
// returns nil for other errors.
func tooMany(err error) *endpoint.Error {
	var full *declare.QuotaError
	var exceeded *quota.Exceeded
	switch {
	case errors.As(err, &full):
		return endpoint.Forbidden(full.Error())
	case errors.As(err, &exceeded):
		return endpoint.Forbidden(exceeded.Error())
	default:
		return nil
	}
}

// busyRetry is when to come again where nothing else is known.
const busyRetry = 10 * time.Second

// Busy returns the answer to an error that says that there was no slot or no time: 429 for a caller who has the share of one
// caller, and 503 where others have what there is. It returns nil for other errors.
func Busy(err error) *endpoint.Error {
	var busy *fair.Busy
	switch {
	case errors.As(err, &busy) && busy.Own:
		return endpoint.TooManyAtOnce(busy.Error(), busy.RetryAfter)
	case errors.As(err, &busy) && busy.Reason != "":
		return endpoint.BusyWith(busy.Error(), busy.RetryAfter)
	case errors.As(err, &busy):
		return endpoint.Busy(busy.RetryAfter)
	case errors.Is(err, git.ErrBusy):
		return endpoint.Busy(busyRetry)
	default:
		return nil
	}
}
