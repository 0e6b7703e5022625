package registryhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	registryauth "github.com/distribution/distribution/v3/registry/auth"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
	"github.com/forgeplane/forgeplane/internal/watermark"
)

// alias reports whether a client names a content by a digest that is not the one in the storage.
func alias(d digest.Digest) bool { return d.Validate() == nil && d.Algorithm() == digest.SHA512 }

// aliased turns the push of a manifest by its SHA-512 into one by its SHA-256, which is the only one that the library takes. It reports false if it
// has answered the request.
func (h *Handler) aliased(w http.ResponseWriter, r *http.Request, name string, d digest.Digest) (*http.Request, bool) {
	if !h.allows(w, r, name, token.Pull, token.Push) {
		return nil, false
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		refuseLong(w)
		return nil, false
	case err != nil:
		return nil, false // the client has gone
	case d != digest.SHA512.FromBytes(payload):
		_ = errcode.ServeJSON(w, errcode.ErrorCodeDigestInvalid) // the client may have gone
		return nil, false
	}
	inner := aboutManifest(r.WithContext(registry.WithAlias(r.Context(), d)), name, digest.FromBytes(payload).String())
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(payload)), int64(len(payload))
	return inner, true
}

const contentDigest = "Docker-Content-Digest"

// saying makes the answer to a request say the digest with which the client names the content, and not the one in the storage.
func saying(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	d := digest.Digest(r.URL.Query().Get("digest"))
	for _, marker := range []string{"/manifests/", "/blobs/"} {
		if _, text, ok := cut(r.URL.Path, marker); ok {
			d = digest.Digest(text)
		}
	}
	if !alias(d) {
		return w
	}
	return &named{w, d}
}

// named is an answer about a content that the client names with a digest.
type named struct {
	http.ResponseWriter
	digest digest.Digest
}

// WriteHeader implements http.ResponseWriter.
func (n *named) WriteHeader(status int) {
	if n.Header().Get(contentDigest) != "" {
		n.Header().Set(contentDigest, n.digest.String())
	}
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (n *named) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// allows reports whether a request may do something in a repository. If not, it answers it.
func (h *Handler) allows(w http.ResponseWriter, r *http.Request, name string, actions ...string) bool {
	var wanted []registryauth.Access
	for _, action := range actions {
		wanted = append(wanted, registryauth.Access{Resource: registryauth.Resource{Type: token.TypeRepository, Name: name}, Action: action})
	}
	_, err := h.access.Authorized(r, wanted...)
	if err == nil {
		return true
	}
	var asked challenge
	if !errors.As(err, &asked) {
		if !errors.Is(err, watermark.ErrBehind) {
			h.log.Error(err, "Failed to decide what a request may do", "repository", name)
		}
		refuse(w, unavailable(err))
		return false
	}
	asked.SetHeaders(r, w)
	_ = errcode.ServeJSON(w, asked.refusal()) // the client may have gone
	return false
}
