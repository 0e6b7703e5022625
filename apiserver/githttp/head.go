package githttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

const (
	// maxLine is the maximum size of a packet line, with the four digits of its length.
	maxLine = 65520
	// maxAhead is the maximum number of bytes of the head of a push in memory, in addition to one line.
	maxAhead = 32 << 10
)

var (
	errHead   = refusal{status: http.StatusBadRequest, text: "The request is malformed: the list of refs in the push does not have the format that Git clients send."}
	errSigned = refusal{status: http.StatusBadRequest, text: "Signed pushes are not supported: please push without --signed."}
	errLong   = refusal{status: http.StatusRequestEntityTooLarge,
		text: fmt.Sprintf("The list of refs in the push is larger than %s.", git.FormatBytes(maxCommands))}
)

// certificate begins the certificate of a signed push.
const certificate = "push-cert"

// head is the body of a push. It parses the list of ref updates, up to the first flush, in the form that clients send, and forwards the
// rest unchanged. git processes some other forms before the push is authorized: it writes a certificate to the objects of the repository.
// So head forwards each line only after checking it.
type head struct {
	in *bufio.Reader
	// failed is called with the problem, and returns the error for Read.
	failed func(error) error

	ahead    []byte // checked, and not forwarded yet
	n        int64
	commands int
	ended    bool
	err      error
}

func (h *head) Read(p []byte) (int, error) {
	if len(h.ahead) == 0 && !h.ended && h.err == nil {
		h.look()
	}
	switch {
	case h.err != nil:
		return 0, h.err
	case len(h.ahead) > 0:
		n := copy(p, h.ahead)
		h.ahead = h.ahead[n:]
		return n, nil
	}
	return h.in.Read(p)
}

// look reads lines until the head ends or maxAhead is reached.
func (h *head) look() {
	h.ahead = h.ahead[:0]
	for !h.ended && len(h.ahead) < maxAhead {
		begin := len(h.ahead)
		if h.err = h.next(); h.err != nil {
			return
		}
		if h.n += int64(len(h.ahead) - begin); h.n > maxCommands {
			h.err = h.failed(errLong)
			return
		}
	}
}

// next reads a line.
func (h *head) next() error {
	var digits [4]byte
	if _, err := io.ReadFull(h.in, digits[:]); err != nil {
		return h.cut(err)
	}
	size, err := strconv.ParseUint(string(digits[:]), 16, 16)
	begin := len(h.ahead) + len(digits)
	switch h.ahead = append(h.ahead, digits[:]...); {
	case string(digits[:]) == flush:
		h.ended = true
		return nil
	case err != nil, size <= 4, size > maxLine:
		return h.failed(errHead)
	}
	h.ahead = append(h.ahead, make([]byte, size-4)...)
	if _, err := io.ReadFull(h.in, h.ahead[begin:]); err != nil {
		return h.cut(err)
	}
	if refused := h.check(string(h.ahead[begin:])); refused != nil {
		return h.failed(refused)
	}
	return nil
}

// cut returns the error for a body that cannot be read to its end.
func (h *head) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return h.failed(errHead)
	}
	return err
}

// check returns an error for an invalid line. A line has the id of a shallow commit or an update of a ref. The capabilities of the client
// follow the first update.
func (h *head) check(line string) error {
	text, _, capabilities := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
	if text == certificate {
		return errSigned
	}
	if id, ok := strings.CutPrefix(text, "shallow "); ok && !capabilities && object.IsID(id) {
		return nil
	}
	before, rest, _ := strings.Cut(text, " ")
	after, ref, _ := strings.Cut(rest, " ")
	h.commands++
	if !object.IsID(before) || !object.IsID(after) || len(before) != len(after) || ref == "" || strings.Contains(ref, "\n") ||
		capabilities && h.commands > 1 {
		return errHead
	}
	return nil
}
