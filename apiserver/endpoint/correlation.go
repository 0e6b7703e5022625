package endpoint

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// The headers of every answer that identify a request, both to the client and in the log.
const (
	requestIDHeader = "X-Request-Id"
	metaHeader      = "X-Gitlab-Meta"
	maxRequestID    = 128
)

// correlate sets the request ID in the headers of an answer: the ID that the client sent if it is valid, and otherwise a random one.
func correlate(answer http.Header, r *http.Request) {
	id := r.Header.Get(requestIDHeader)
	if !isRequestID(id) {
		id = newRequestID()
	}
	answer[requestIDHeader] = []string{id}
	answer[metaHeader] = []string{`{"correlation_id":"` + id + `","version":"1"}`}
}

func isRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// newRequestID returns a random ID that distinguishes requests. It is not a secret.
func newRequestID() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	return hex.EncodeToString(id[:])
}
