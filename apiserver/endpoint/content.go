package endpoint

import (
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/pace"
)

// Content is the response of an endpoint that does not answer in JSON, such as a file or an archive.
type Content struct {
	// Type is the media type.
	Type string
	// Header has additional headers; it may be nil.
	Header http.Header
	// Size is the length in bytes, or negative if it is not known in advance.
	Size int64
	// Live sends each piece as soon as it is written, for content that is still being produced.
	Live bool
	// Write writes the content. It may take as long as the client keeps reading fast enough. If it fails before the first byte, the error
	// is the answer. If it fails later, the connection is aborted, so that the client does not mistake a part for the whole. It is not
	// called for HEAD.
	Write func(io.Writer) error
}

// Streamed is a response that can be too large to build in memory.
type Streamed interface {
	// Stream reports whether the response is too large, and if so returns the content to send instead.
	Stream() (Content, bool)
}

// Headed is a JSON response with headers of its own.
type Headed interface {
	// Header returns the additional headers.
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
	if out.failed == nil && r.Context().Err() == nil { // the client is still connected
		h.options.Log.Error(err, "Failed to send a response", "method", r.Method, "path", r.URL.Path, "request", w.Header().Get(requestIDHeader))
	}
	panic(http.ErrAbortHandler)
}

// paced is a writer with a deadline for each piece that the client reads, and a minimum throughput for the whole.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	content Content
	pace    pace.Pace
	begun   bool
	// failed is the reason why nothing more is sent to the client.
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
