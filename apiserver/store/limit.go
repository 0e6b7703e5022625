package store

import (
	"errors"
	"net/http"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/declare"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/iid"
	"github.com/forgeplane/forgeplane/internal/quota"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// AnswerLimit returns the answer to an error that every endpoint answers in the same way: there was no time for the request, a limit is
// reached, a repository is not where it was or has no space left, or this server is behind others. It returns nil for any other error.
func AnswerLimit(err error) *endpoint.Error {
	if answer := busy(err); answer != nil {
		return answer
	}
	if git.NoSpace(err) {
		return endpoint.Message(http.StatusInsufficientStorage, "%s", fullText(err)).Because(err)
	}
	if git.OutOfReach(err) {
		return endpoint.Unavailable(git.Unavailable).Because(err)
	}
	if errors.Is(err, iid.ErrMoved) {
		return endpoint.Unavailable("Another project is taking over the repository of this one. Please try again later.")
	}
	if errors.Is(err, watermark.ErrBehind) {
		return endpoint.Unavailable(watermark.Behind)
	}
	return tooMany(err)
}

// fullText says what has no space left according to an error.
func fullText(err error) string {
	switch {
	case errors.Is(err, git.ErrScratch), errors.Is(err, endpoint.ErrSpool):
		return "The server has no space left for temporary files. Please tell an administrator."
	case errors.Is(err, blob.ErrWrite):
		return "The storage of avatars and artifacts has no space left. Please tell an administrator."
	default:
		return git.Full
	}
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

// busyRetry is the default of Retry-After.
const busyRetry = 10 * time.Second

// busy returns the answer to an error that says that there was no slot or no time: 429 for a caller who has the share of one
// caller, and 503 where others have what there is. It returns nil for other errors.
func busy(err error) *endpoint.Error {
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
