package endpoint

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
)

// The headers of every answer by which a client and the log name the same request.
const (
	requestIDHeader = "X-Request-Id"
	metaHeader      = "X-Gitlab-Meta"
	maxRequestID    = 128
)

// correlate gives an answer the name of its request: the client's, if it is a name, or a random one.
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

// newRequestID tells one request from another; it guards nothing.
func newRequestID() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	return hex.EncodeToString(id[:])
}
