package endpoint

import (
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
)

// Content is the response of an endpoint that does not answer in JSON: a file, an archive.
type Content struct {
	// Type is the media type.
	Type string
	// Header has more headers; it may be nil.
	Header http.Header
	// Size is in bytes; negative when it is not known before.
	Size int64
	// Live has each piece sent at once that is written, for what comes into being while it is sent.
	Live bool
	// Write writes it. It may take its time, as long as the client takes what it gets, and not too slowly. An error before the
	// first byte is the answer; after that the connection breaks off, so that nobody takes a part for the whole. For HEAD it is
	// not called.
	Write func(io.Writer) error
}

// Streamed is a response that may be too large to be put together in memory.
type Streamed interface {
	// Stream reports whether it is, and returns what is sent in its place.
	Stream() (Content, bool)
}

// Headed is a response in JSON that has headers of its own.
type Headed interface {
	// Header returns them.
	Header() http.Header
}

var (
	contentType  = reflect.TypeFor[Content]()
	streamedType = reflect.TypeFor[Streamed]()
)

// stream sends a Content.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, status int, c Content) error {
	out := &paced{
		ResponseWriter: w, control: http.NewResponseController(w), status: status, content: c,
		pace: pace.Pace{Patience: h.options.WriteTimeout, Pause: h.options.WriteTimeout},
	}
	defer func() { _ = out.control.SetWriteDeadline(time.Time{}) }()
	if r.Method == http.MethodHead {
		out.begin()
		return nil
	}
	err := c.Write(out)
	if err == nil {
		out.begin()
		return nil
	}
	if !out.begun {
		return err
	}
	if out.failed == nil && r.Context().Err() == nil { // the client is still there
		h.options.Log.Error(err, "Sending an answer", "method", r.Method, "path", r.URL.Path, "request", w.Header().Get(requestIDHeader))
	}
	panic(http.ErrAbortHandler)
}

// paced is a writer that gives the client some time for each piece, and for all that it has got.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	content Content
	pace    pace.Pace
	begun   bool
	// failed is why the client gets no more.
	failed error
}

// begin sends the headers, once.
func (p *paced) begin() {
	if p.begun {
		return
	}
	p.begun = true
	header := p.Header()
	header.Set("Content-Type", p.content.Type)
	for name, values := range p.content.Header {
		header[name] = values
	}
	if p.content.Size >= 0 {
		header.Set("Content-Length", strconv.FormatInt(p.content.Size, 10))
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(p.pace.Patience))
	p.WriteHeader(p.status)
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (int, error) {
	p.begin()
	n, err := p.pace.Pass(p.control.SetWriteDeadline, func() (int, error) {
		n, err := p.ResponseWriter.Write(b)
		if err == nil && p.content.Live {
			err = p.control.Flush()
		}
		return n, err
	})
	p.failed = err
	return n, err
}
