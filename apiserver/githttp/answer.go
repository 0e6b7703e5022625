package githttp

import (
	"errors"
	"net/http"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
	"github.com/forgeplane/forgeplane/internal/git"
)

// maxHeld is how much of an answer is held back while the client still sends.
const maxHeld = 1 << 20

// answer is what the client receives. As clients of HTTP/1.1 and what lies between need not listen before they have sent
// all, it holds the beginning back until then.
type answer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	pace    pace.Pace

	contentType string
	prefix      string
	// in is the body to wait for. It may be nil.
	in *body
	// stubborn discards what the client does not read, so that git does not stop in the middle of its work.
	stubborn bool

	held  []byte
	begun bool
	lost  error // the client takes no more
}

func (a *answer) Write(p []byte) (int, error) {
	if a.in != nil && !a.in.ended() {
		if len(a.held)+len(p) <= maxHeld {
			a.held = append(a.held, p...)
			return len(p), nil
		}
		_ = a.control.EnableFullDuplex() // other versions of HTTP need not be asked
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
		if err == nil && len(p) < 4<<10 { // a sign of life rather than data: it must not wait for more
			err = a.control.Flush()
		}
		return n, err
	})
	return a.lost
}

// finish sends what is held back, now that git has ended, with err. It returns nil if the answer is complete: what git
// has failed in, it has told the client itself.
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
