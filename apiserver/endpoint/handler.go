package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2" // chosen among the non-cryptographic hashes because it is as fast as memory
	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/router"
)

// Guard identifies the caller of a request, and decides whether the request is allowed.
type Guard interface {
	// Admit decides about a request. It is called before the parameters are read, unless they can contain a credential. It returns the
	// context and the subject for the handler, or an *Error for the client. The subject has the type that the endpoint declares.
	Admit(r *http.Request, e *Endpoint, sent Sent) (ctx context.Context, subject any, err error)
	// Check returns an error if Admit could never admit anybody to the endpoint, because the Guard does not know its subject or its
	// ability.
	Check(e *Endpoint) error
}

// Options configures a Handler.
type Options struct {
	// Guard admits requests.
	Guard Guard
	// BaseURL is the URL that precedes the path of an endpoint, such as https://forge.example/api/v4, unless WithBaseURL replaces it for a
	// request.
	BaseURL *url.URL
	// Reference is the address of the list of all endpoints, which the answer to an unknown path names. Without it, the answer names none.
	Reference string
	// Info is for the OpenAPI document.
	Info Info
	// ReadTimeout is the time in which a client must send a body. WriteTimeout is the time in which it must read the answer; for a streamed
	// answer it applies to each piece, and the total time grows with the length. Both default to a minute.
	ReadTimeout, WriteTimeout time.Duration
	// Fresh is the maximum age of the Guard's decision when a handler begins: if a body came so slowly that the decision is older, the
	// Guard is asked again. It defaults to five seconds.
	Fresh time.Duration
	// Memory limits the memory that is held for callers: for long bodies until the handler has returned, and for long answers until the
	// client has read them. The contexts that Guard.Admit returns identify the callers. If it is nil, there is no limit.
	Memory Memory
	// Spool is the directory for uploads, which exist until the request is answered. It defaults to the system's directory for temporary
	// files.
	Spool string
	// Disk limits the size of the files in Spool, as Memory limits memory. If it is nil, there is no limit.
	Disk Memory
	// Refused returns the answer to an error whose answer does not depend on the endpoint, such as Busy for an error that says that there was
	// no time. It returns nil for all other errors. If Refused is nil, there are no such errors.
	Refused func(err error) *Error
	// Exceeded returns a sentence for the client about the server limit that the request exceeds according to an error, or "" if the error
	// is not about a limit. If Exceeded is nil, no error is.
	Exceeded func(err error) string
	// Failed is called with the text of an answer that says why the server cannot serve a request now. It may be nil.
	Failed func(r *http.Request, text string)
	// Routed is called with the endpoint that a request is for, before anything is decided about the request. It may be nil.
	Routed func(r *http.Request, e *Endpoint)
	// Outdated reports whether the data behind a decision may be older than the client's own last write, and returns once it no longer is.
	// It is called before a client is told that something does not exist, is not allowed or is in the way; the request is then tried once
	// more. An error is the client's answer: it says that the data is still outdated. If Outdated is nil, data is never outdated.
	Outdated func(ctx context.Context) (bool, error)
	// Stopping is closed when the server begins to stop, which ends requests that wait in Poll. It may be nil.
	Stopping <-chan struct{}
	// Observe is called after each answer of an endpoint. It may be nil.
	Observe func(e *Endpoint, status int, took time.Duration)
	Log     logr.Logger
}

// Handler serves tables of endpoints. It matches paths as they were sent, so %2F does not separate segments.
type Handler struct {
	options  Options
	routes   *router.Router[*Endpoint]
	tables   []Table
	buffers  buffers
	document func() []byte
}

// NewHandler returns a handler of all endpoints in the tables. It panics if two endpoints cannot be told apart, or if the Guard's Check
// fails for one.
func NewHandler(o Options, tables ...Table) *Handler {
	o.ReadTimeout, o.WriteTimeout = cmp.Or(o.ReadTimeout, defaultReadTimeout), cmp.Or(o.WriteTimeout, defaultWriteTimeout)
	o.Fresh = cmp.Or(o.Fresh, defaultFresh)
	h := &Handler{options: o, routes: router.New[*Endpoint]()}
	h.document = sync.OnceValue(h.buildOpenAPI)
	h.tables = append(slices.Clip(tables), Table{
		Get("/openapi.json", h.getOpenAPI).Anonymous(Served).Doc("Get this reference as an OpenAPI document."),
	}.Named("Reference"))
	for e := range h.Endpoints() {
		if err := o.Guard.Check(e); err != nil {
			panic(fmt.Sprintf("endpoint: %s: %v", e, err))
		}
		e.check()
		h.route(e)
	}
	return h
}

// Endpoints yields every endpoint, in the order of the tables.
func (h *Handler) Endpoints() func(yield func(*Endpoint) bool) {
	return func(yield func(*Endpoint) bool) {
		for _, t := range h.tables {
			for _, e := range t {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Refuse returns a handler that answers every request with an error, in the same form as ServeHTTP.
func (h *Handler) Refuse(err *Error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.begin(w, r)
		h.fail(w, r, err)
	})
}

// begin sets the headers that every answer has.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("Vary", "Origin")
	header.Set("Cache-Control", "max-age=0, private, must-revalidate")
	correlate(header, r)
	h.awaitBody(w, r)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, e *Endpoint, path map[string]string) {
	if h.options.Routed != nil {
		h.options.Routed(r, e)
	}
	if h.options.Observe != nil {
		seen := &observed{ResponseWriter: w, status: http.StatusOK}
		begun := time.Now()
		defer func() { h.options.Observe(e, seen.status, time.Since(begun)) }()
		w = seen
	}
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			h.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	a := &answer{}
	defer func() {
		a.leave()
		a.kept.close()
	}()
	err := h.call(w, r, e, path, a)
	if err == nil {
		err = h.write(w, r, e, a)
	}
	if err != nil {
		err = h.wait(w, r, e, a, err)
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

// observed is a response writer that remembers the status.
type observed struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (o *observed) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// admit asks the Guard about a request.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer) (ctx context.Context, subject any, err error) {
	if err := h.carried(w, r, e, a); err != nil {
		return nil, nil, err
	}
	ctx, subject, err = h.options.Guard.Admit(r, e, a.known)
	if h.reconsider(w, r, e, a, err) {
		ctx, subject, err = h.options.Guard.Admit(r, e, a.known)
	}
	again, err := h.outdated(r, err)
	if again {
		ctx, subject, err = h.options.Guard.Admit(r, e, a.known)
	}
	return ctx, subject, err
}

// call runs the handler of an endpoint, and stores its response in a.
func (h *Handler) call(w http.ResponseWriter, r *http.Request, e *Endpoint, path map[string]string, a *answer) error {
	a.known.Path = path
	if err := e.acceptable(r); err != nil {
		return err
	}
	ctx, subject, err := h.admit(w, r, e, a)
	if err != nil {
		return err
	}
	admitted := time.Now()
	if a.weigh, err = h.admitBody(ctx, w, r, e); err != nil {
		return err
	}
	if a.sent == nil {
		if a.sent, err = h.read(ctx, w, r, e, a); err != nil {
			return err
		}
		received(w, r)
	}
	if err := h.admitWrite(ctx, r, a); err != nil {
		return err
	}
	identified, err := a.identify(r)
	if err != nil {
		return err
	}
	if identified || (hasBody(r) || !reads(r)) && time.Since(admitted) > h.options.Fresh {
		if ctx, subject, err = h.options.Guard.Admit(r, e, a.known); err != nil {
			return err
		}
	}
	if a.request, err = e.parameters(a.sent, path); err != nil {
		return err
	}
	a.response, err = e.answer(h.withPolling(ctx, r, e, a), r, subject, a.request)
	again, err := h.outdated(r, err)
	if again {
		if ctx, subject, err = h.options.Guard.Admit(r, e, a.known); err != nil {
			return err
		}
		if a.request, err = e.parameters(a.sent, path); err != nil {
			return err
		}
		a.response, err = e.answer(h.withPolling(ctx, r, e, a), r, subject, a.request)
	}
	a.hold = h.hold(ctx)
	return err
}

// acceptable returns an error for a request that the endpoint refuses regardless of the caller, and otherwise nil.
func (e *Endpoint) acceptable(r *http.Request) error {
	if r.ContentLength > e.most() {
		return tooLarge()
	}
	if e.download && hotlinked(r) {
		return Message(http.StatusNotAcceptable, "406 Not Acceptable")
	}
	return nil
}

// parameters decodes the sent parameters into the request type of the handler.
func (e *Endpoint) parameters(sent parameters, path map[string]string) (request any, err error) {
	if e.nonempty && !anything(sent) {
		return nil, e.request.nothing()
	}
	if e.strict {
		if err := e.request.unknown(sent); err != nil {
			return nil, err
		}
	}
	if request, err = e.request.decode(sent, path); err != nil {
		return nil, err
	}
	if p, ok := request.(paged); ok {
		if err := p.paging().check(); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// answer calls the handler with the context and the subject that the Guard returned.
func (e *Endpoint) answer(ctx context.Context, r *http.Request, subject, request any) (any, error) {
	if e.conditional {
		ctx = withCondition(ctx, r)
	}
	return e.call(ctx, subject, request)
}

// write sends a success. It returns noRoom before it sends anything if the answer must wait for memory.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, e *Endpoint, a *answer) error {
	last(w, r)
	status, response, err := e.reply(w.Header(), a.response)
	if err != nil {
		return err
	}
	if l, ok := response.(list); ok {
		l.headers(w.Header(), h.url(r), e.request.query(a.sent), a.request.(paged).paging())
		response = l.items()
	}
	if _, none := response.(None); none || status == http.StatusNoContent {
		h.send(w, status, nil)
		return nil
	}
	if headed, is := response.(Headed); is {
		maps.Copy(w.Header(), headed.Header())
	}
	switch c := response.(type) {
	case Content:
		return h.stream(w, r, status, c)
	case Elsewhere:
		return h.lead(w, r, status, c)
	}
	if s, is := response.(Streamed); is {
		if c, large := s.Stream(); large {
			return h.stream(w, r, status, c)
		}
	}
	held, err := h.room(a, response)
	if err != nil {
		return err
	}
	*a = answer{kept: a.kept} // only the upload is still needed while the client reads the text
	return h.json(w, r, status, response, held)
}

// url returns the URL of a request as the client sees it, without the query.
func (h *Handler) url(r *http.Request) *url.URL {
	base, ok := r.Context().Value(baseURLKey{}).(*url.URL)
	if !ok {
		base = h.options.BaseURL
	}
	return base.JoinPath(r.URL.EscapedPath())
}

// baseURLKey is the context key of the base URL of a request.
type baseURLKey struct{}

// WithBaseURL returns a context for requests whose base URL differs from Options.BaseURL, because they arrived another way.
func WithBaseURL(ctx context.Context, base *url.URL) context.Context {
	return context.WithValue(ctx, baseURLKey{}, base)
}

// json sends an answer in JSON. held is the memory that is held for it.
func (h *Handler) json(w http.ResponseWriter, r *http.Request, status int, body any, held holding) error {
	defer held.weigh(0)
	k, remembered := body.(anyKept)
	if remembered {
		var text []byte
		if body, text = k.load(); text != nil {
			h.sendJSON(w, r, status, text)
			return nil
		}
	}
	buffer := h.buffers.get(held.size)
	defer h.buffers.put(buffer, held.size)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	text := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if remembered {
		k.encoded(bytes.Clone(text))
	}
	held.weigh(int64(buffer.Cap()))
	h.sendJSON(w, r, status, text)
	return nil
}

// sendJSON sends an answer, or 304 if the client has it already.
func (h *Handler) sendJSON(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusOK && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		tag := etag(text)
		w.Header().Set("ETag", tag)
		if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), tag) {
			h.send(w, http.StatusNotModified, nil)
			return
		}
	}
	h.send(w, status, text)
}

// etag returns a hash that distinguishes answers. It is not cryptographic.
func etag(text []byte) string {
	return `W/"` + strconv.FormatUint(xxhash.Sum64(text), 16) + `"`
}

// fail answers with an error. An error that is not meant for the client is logged, unless the client has disconnected.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	last(w, r)
	var e *Error
	if !errors.As(err, &e) {
		e = h.explain(err)
	}
	if e == nil {
		e = Message(http.StatusInternalServerError, "500 Internal Server Error").Because(err).
			Describe("The reason is in the log, with the request id %s. Please tell an administrator.", w.Header().Get(requestIDHeader))
	}
	if e.cause != nil && !errors.Is(r.Context().Err(), context.Canceled) {
		h.options.Log.Error(e.cause, "Failed to serve a request", "method", r.Method, "path", r.URL.Path, "request", w.Header().Get(requestIDHeader))
	}
	if e.Status > http.StatusInternalServerError && h.options.Failed != nil {
		h.options.Failed(r, e.Text())
	}
	for name, values := range e.Header {
		w.Header()[name] = values
	}
	switch body := e.body.(type) {
	case nil:
		h.send(w, e.Status, nil)
	case text:
		w.Header().Set("Content-Type", "text/plain")
		h.send(w, e.Status, []byte(body))
	default:
		if err := h.json(w, r, e.Status, body, holding{weigh: uncounted}); err != nil {
			h.options.Log.Error(err, "Failed to encode an error", "request", w.Header().Get(requestIDHeader))
			h.send(w, http.StatusInternalServerError, nil)
		}
	}
}

// explain returns the answer to an error that Options knows, or nil for any other error.
func (h *Handler) explain(err error) *Error {
	if h.options.Refused != nil {
		if refused := h.options.Refused(err); refused != nil {
			return refused
		}
	}
	if h.options.Exceeded != nil {
		if what := h.options.Exceeded(err); what != "" {
			return Message(http.StatusRequestEntityTooLarge, "%s", what)
		}
	}
	return nil
}
