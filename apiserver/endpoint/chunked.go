package endpoint

import (
	"errors"
	"io"
	"net/http"
)

// maxDiscarded is the number of unread bytes of a body that are read and discarded, so that the connection ends cleanly. net/http discards
// as much before it serves the next request on a connection.
const maxDiscarded = 256 << 10

// last closes the connection after a request with a chunked body. RFC 9112, section 6.1, requires that if the request also has a
// Content-Length. The handler cannot see whether it had one; a proxy that relied on it would interpret the bytes that follow on the
// connection differently from the server.
//
// Call last before the answer is written. If a body is too long to be read, the server closes the connection itself; last reads the rest of
// a shorter body, so that the client still receives the answer.
func last(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || len(r.TransferEncoding) == 0 || r.Header.Get("Expect") != "" {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, maxDiscarded); errors.Is(err, io.EOF) {
		w.Header().Set("Connection", "close")
	}
}
