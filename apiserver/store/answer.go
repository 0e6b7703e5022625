package store

import (
	"errors"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/declare"
)

// answer returns the answer for an error of declare.Writer, and any other error as it is. what names the object as in endpoint.NotFound,
// which is the answer if the object is gone. A value that the schema refuses gives 422; families that need another text for it check the
// value first.
func answer(err error, what string) error {
	var invalid *declare.InvalidError
	var forbidden *refusedError
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
