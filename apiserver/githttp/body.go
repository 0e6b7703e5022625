package githttp

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
)

// maxDrained is the maximum number of bytes that are read after git has stopped reading, so that the client reads the response.
const maxDrained = 256 << 20

// maxCommands is the maximum size of the list of refs in a push, in bytes.
const maxCommands = 64 << 20

var errBody = refusal{status: http.StatusBadRequest, text: "The request is malformed."}

// body is the body of a request: decompressed, and limited in size and time.
type body struct {
	*bufio.Reader
	wire *wire
	// failed is called with the reason why the body cannot be read to its end. It can be nil.
	failed func(error)
	whole  atomic.Bool
}

// newBody checks the start of a body, so that no process is started for a malformed one. The objects of a push are limited to maxPush
// bytes; 0 means no limit.
func newBody(control *http.ResponseController, r io.Reader, req request, h *Handler, maxPush int64) (*body, error) {
	b := &body{wire: &wire{r: r, control: control, pace: h.pace()}}
	limit := h.MaxFetchBytes
	if req.service == transfer.ReceivePack && maxPush > 0 {
		limit = maxPush + maxCommands // beyond this limit, git itself explains the problem with the objects
	} else if req.service == transfer.ReceivePack {
		limit = 0
	}
	unpacked := &decoded{body: b, packed: req.gzip, limit: limit}
	if req.service == transfer.ReceivePack {
		b.Reader = bufio.NewReaderSize(&head{in: bufio.NewReader(unpacked), failed: unpacked.fail}, 64<<10)
		_, err := b.Peek(len(flush))
		return b, err
	}
	b.Reader = bufio.NewReaderSize(unpacked, 64<<10)
	err := b.checkStart()
	return b, err
}

// checkStart checks the first packet line of a fetch. Clients send a lone flush to find out whether they must sign in.
func (b *body) checkStart() error {
	head, err := b.Peek(4)
	if err != nil {
		return errBody
	}
	if string(head) == flush {
		return nil
	}
	size, err := strconv.ParseUint(string(head), 16, 16)
	if err != nil || size < 4+1 || size > maxLine {
		return errBody
	}
	line, _ := b.Peek(int(min(size, 4+40)))
	for _, start := range []string{"want ", "command="} {
		if strings.HasPrefix(string(line[4:]), start) {
			return nil
		}
	}
	return errBody
}

// empty reports whether the body requests nothing. Clients send such a body to find out whether they must sign in.
func (b *body) empty() bool {
	head, _ := b.Peek(len(flush))
	return string(head) == flush
}

// ended reports whether the whole body has been read and is well-formed.
func (b *body) ended() bool { return b.whole.Load() }

// drain reads the rest of the body.
func (b *body) drain() {
	_, _ = io.CopyN(io.Discard, b.wire, maxDrained)
}

// decoded is the body after unpacking.
type decoded struct {
	body   *body
	packed bool
	limit  int64 // 0 means no limit
	r      io.Reader
	n      int64
}

func (d *decoded) Read(p []byte) (int, error) {
	if d.r == nil {
		d.r = d.body.wire
		if d.packed {
			unpacked, err := gzip.NewReader(d.body.wire)
			if err != nil {
				return 0, d.fail(err)
			}
			d.r = unpacked
		}
	}
	n, err := d.r.Read(p)
	d.n += int64(n)
	switch {
	case d.limit > 0 && d.n > d.limit:
		return 0, d.fail(refusal{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("The request is larger than %d bytes.", d.limit)})
	case errors.Is(err, io.EOF):
		d.body.whole.Store(true)
	case err != nil:
		return n, d.fail(err)
	}
	return n, err
}

func (d *decoded) fail(err error) error {
	d.body.whole.Store(false)
	if !errors.As(err, new(refusal)) {
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	if d.body.failed != nil {
		d.body.failed(err)
	}
	return err
}

// wire is the body as it arrives.
type wire struct {
	r       io.Reader
	control *http.ResponseController
	pace    pace.Pace
	err     error // of the last Read
}

func (w *wire) Read(p []byte) (int, error) {
	if w.err != nil { // after the response has begun, net/http returns an error other than EOF
		return 0, w.err
	}
	n, err := w.pace.Pass(w.control.SetReadDeadline, func() (int, error) { return w.r.Read(p) })
	w.err = err
	if errors.Is(err, io.EOF) { // otherwise net/http would close the connection at the deadline, while git is running
		_ = w.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
