package githttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// refusal is a response other than success. Git shows the text at the terminal.
type refusal struct {
	status int
	text   string
	allow  string // for status 405
	// retry is the delay after which the client should retry; 0 if it is not known.
	retry time.Duration
	// fetch marks a response that must have status 200, because git ignores the body of any other.
	fetch bool
}

func (e refusal) Error() string { return e.text }

// signIn makes git ask for credentials.
var signIn = refusal{status: http.StatusUnauthorized,
	text: "Please sign in with your username, and as password an access token with the scope read_repository or write_repository."}

var missingScope = map[transfer.Service]refusal{
	transfer.UploadPack: {status: http.StatusForbidden,
		text: "The access token lacks a scope: to fetch it needs read_repository, write_repository or api."},
	transfer.ReceivePack: {status: http.StatusForbidden,
		text: "The access token lacks a scope: to push it needs write_repository or api."},
}

var errTimeout = errors.New("the request took longer than allowed")

func (e refusal) write(w http.ResponseWriter) {
	noCache(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch e.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="Forgeplane"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", e.allow)
	case http.StatusServiceUnavailable:
		e.retry = cmp.Or(e.retry, defaultRetry)
	}
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.retry+time.Second-1)/time.Second)))
	}
	if e.fetch {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, packetLine("ERR "+e.text))
		return
	}
	w.WriteHeader(e.status)
	fmt.Fprintln(w, e.text)
}

// defaultRetry is the default of Retry-After.
const defaultRetry = 10 * time.Second

// refused converts errors of rate limits and slots to refusals. It returns other errors unchanged.
func (req request) refused(err error) error {
	var busy *fair.Busy
	var often *ratelimit.Exceeded
	r := refusal{status: http.StatusTooManyRequests}
	switch {
	case errors.As(err, &busy):
		r.retry, r.text = busy.RetryAfter, busy.Error()
		if !busy.Own {
			r.status = http.StatusServiceUnavailable
		}
	case errors.As(err, &often):
		r.retry, r.text = often.Wait, often.Error()
	default:
		return err
	}
	// During a fetch, git reports only the number of a status other than 200.
	r.fetch = !req.advertise && req.service == transfer.UploadPack
	return r
}

// noCache keeps the response out of caches, including those of HTTP/1.0.
func noCache(header http.Header) {
	header.Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	header.Set("Pragma", "no-cache")
	header.Set("Expires", "Fri, 01 Jan 1980 00:00:00 GMT")
}

// explain returns the response for a failure, without internal details.
func (h *Handler) explain(ctx context.Context, err error) refusal {
	const later = "Please try again later, and tell an administrator if the problem persists."
	switch {
	case git.LimitReached(err) != "":
		return refusal{status: http.StatusRequestEntityTooLarge, text: git.LimitReached(err)}
	case errors.Is(err, watermark.ErrBehind):
		return refusal{status: http.StatusServiceUnavailable, text: watermark.Behind}
	case errors.Is(err, errTimeout):
		return refusal{status: http.StatusServiceUnavailable, text: "The request took too long."}
	case git.OutOfReach(err):
		return refusal{status: http.StatusServiceUnavailable, text: git.Unavailable}
	case git.NoSpace(err):
		return refusal{status: http.StatusInsufficientStorage, text: git.Full}
	case ctx.Err() != nil:
		return refusal{status: http.StatusServiceUnavailable, text: "The request was interrupted."}
	default:
		return refusal{status: http.StatusInternalServerError, text: "The server failed. " + later}
	}
}

// flush ends a list of packet lines.
const flush = "0000"

// packetLine encodes a line of text for the protocol. The text has no line breaks, except for an optional last one.
func packetLine(text string) string {
	end := ""
	if strings.HasSuffix(text, "\n") {
		end = "\n"
	}
	text = strings.Join(strings.Fields(text), " ") + end
	return fmt.Sprintf("%04x%s", len(text)+4, text)
}
