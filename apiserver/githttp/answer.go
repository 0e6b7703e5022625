package githttp

import (
	"errors"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
	"github.com/forgeplane/forgeplane/internal/git"
)

// maxHeld is the maximum number of bytes of a response that are buffered while the client sends.
const maxHeld = 1 << 20

// answer buffers the start of the response until the request body is read, because HTTP/1.1 clients and proxies need not read earlier.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	pace    pace.Pace

	contentType string
	prefix      string
	// in is the body to wait for. It can be nil.
	in *body
	// stubborn discards data that the client does not read, so that git completes its work.
	stubborn bool

	held  []byte
	begun bool
	lost  error // why the client reads no more
}

func (a *answer) Write(p []byte) (int, error) {
	if a.in != nil && !a.in.ended() {
		if len(a.held)+len(p) <= maxHeld {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		_ = a.control.EnableFullDuplex() // other versions of HTTP are always full-duplex
	}
	if err := a.send(p); err != nil && !a.stubborn {
		return 0, err
	}
	return len(p), nil
}

func (a *answer) send(p []byte) error {
	if a.lost != nil {
		return a.lost
	}
	if !a.begun {
		a.begun = true
		noCache(a.w.Header())
		a.w.Header().Set("Content-Type", a.contentType)
		a.held = append([]byte(a.prefix), a.held...)
	}
	if len(a.held) > 0 {
		p, a.held = append(a.held, p...), nil
	}
	_, a.lost = a.pace.Pass(a.control.SetWriteDeadline, func() (int, error) {
		n, err := a.w.Write(p)
		if err == nil && len(p) < 4<<10 { // a keep-alive message, which must not be delayed
			err = a.control.Flush()
		}
		return n, err
	})
	return a.lost
}

// finish sends the buffered data after git has ended with err. It returns nil if the response is complete, including failures that git
// itself reported to the client.
func (a *answer) finish(err error) error {
	failed := (*git.Error)(nil)
	if exited := errors.As(err, &failed) && (failed.ExitCode > 0 || git.LimitReached(err) != ""); err != nil && (!exited || !a.begun && len(a.held) == 0) {
		return err
	}
	if a.in != nil {
		a.in.drain()
	}
	return a.send(nil)
}
