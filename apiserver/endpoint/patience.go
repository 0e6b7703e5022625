package endpoint

import (
	"net/http"
	"strconv"
	"time"
)

// The timeouts for clients, unless Options replaces them.
const (
	defaultReadTimeout  = time.Minute
	defaultWriteTimeout = time.Minute
	defaultFresh        = 5 * time.Second
)

// awaitBody limits the time in which a client must send a body. The limit applies to the handler that reads the body, and to the server,
// which discards the rest of a body that the handler did not read.
func (h *Handler) awaitBody(w http.ResponseWriter, r *http.Request) {
	if hasBody(r) {
		// Writers that do not support deadlines, as in tests, are protected in other ways.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.options.ReadTimeout))
	}
}

// received removes the deadline that awaitBody set. The server continues to read, to notice when the client disconnects; if that read hit
// the deadline, the handler's context would be canceled.
func received(w http.ResponseWriter, r *http.Request) {
	if hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// send writes an answer with a deadline, in case the client does not read it. The deadline does not apply to what follows on the same
// connection, such as a clone.
func (h *Handler) send(w http.ResponseWriter, status int, body []byte) {
	if len(body) > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(h.options.WriteTimeout))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has disconnected receives nothing
	_ = c.Flush()
	_ = c.SetWriteDeadline(time.Time{})
}
