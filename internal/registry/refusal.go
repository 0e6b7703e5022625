package registry

import (
	"context"
	"errors"

	"github.com/distribution/distribution/v3/registry/api/errcode"

	"github.com/forgeplane/forgeplane/internal/registry/record"
)

// Refusal is the reason for the refusal of a request, which the library does not pass on: it answers most errors of what is below it with
// "unknown error". A server gives each request a Refusal, and answers with its error.
type Refusal struct{ err error }

type refusalKey struct{}

// WithRefusal returns a context for a request, and where its refusal is noted.
func WithRefusal(ctx context.Context) (context.Context, *Refusal) {
	r := &Refusal{}
	return context.WithValue(ctx, refusalKey{}, r), r
}

// Err returns the error with which to answer, or nil.
func (r *Refusal) Err() error { return r.err }

// Refuse notes an error that can be answered, and returns it.
func Refuse(ctx context.Context, err errcode.Error) error {
	if r, ok := ctx.Value(refusalKey{}).(*Refusal); ok && r.err == nil {
		r.err = err
	}
	return err
}

// refused notes the answer for an error of the records or of a check, and returns it. It returns other errors as they are.
func refused(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, record.ErrDeleted), errors.Is(err, errArchived), errors.As(err, new(*fullError)):
		return Refuse(ctx, errcode.ErrorCodeDenied.WithMessage(err.Error()))
	case errors.Is(err, record.ErrNotFound):
		return Refuse(ctx, errcode.ErrorCodeDenied.WithMessage("the repository was deleted: push again"))
	default:
		return err
	}
}

// Unavailable is the answer while the records or the cache cannot be read.
var Unavailable = errcode.ErrorCodeUnavailable.WithMessage("the registry cannot be reached at the moment: try again later") //nolint:gochecknoglobals // a constant

// unavailable notes the answer for an error of the records, and returns it.
func unavailable(ctx context.Context, err error) error {
	if errors.Is(err, record.ErrSweeping) || errors.Is(err, record.ErrBusy) {
		return Refuse(ctx, errcode.ErrorCodeUnavailable.WithMessage(err.Error()))
	}
	return Refuse(ctx, Unavailable)
}
