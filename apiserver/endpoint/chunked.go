package endpoint

import (
	"errors"
	"io"
	"net/http"
)

// maxDiscarded is how much of a body that nobody has read is thrown away for the sake of a good end: as much as the server
// throws away for the next request on the connection.
const maxDiscarded = 256 << 10

// last closes the connection after a request that came in chunks, as RFC 9112 asks for in section 6.1 where there was a
// Content-Length, too. Whether there was is not known here, and a proxy that went by it takes what follows on the connection
// for something else than the server would. It is called before the answer. Of a body that is too long to be read the server
// closes the connection by itself, and so that the client still hears the answer.
func last(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || len(r.TransferEncoding) == 0 || r.Header.Get("Expect") != "" {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, maxDiscarded); errors.Is(err, io.EOF) {
		w.Header().Set("Connection", "close")
	}
}
