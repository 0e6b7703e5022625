package registryhttp

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
)

// maxManifest is the greatest length of a manifest in bytes, as in the library.
const maxManifest = 4 << 20

// manifestBody is the body of the push of a manifest. The library answers 400 if it is too long, and the specification asks for 413.
type manifestBody struct {
	io.ReadCloser
	length int64
}

// Read implements io.Reader.
func (b *manifestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.length += int64(n)
	return n, err
}

// refuseLong answers the push of a manifest that is too long (OCI distribution specification 1.1, "Pushing Manifests").
func refuseLong(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	_ = json.NewEncoder(w).Encode(errcode.Errors{errcode.ErrorCodeManifestInvalid.WithMessage("the manifest is longer than 4 MiB")}) // the client may have gone
}
