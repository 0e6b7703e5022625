package registryhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

// timeout limits the time of a list of referrers.
const timeout = 30 * time.Second

// referrers lists the manifests that refer to a subject (OCI distribution specification 1.1, "Listing Referrers").
func (h *Handler) referrers(w http.ResponseWriter, r *http.Request, name, subject string) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		_ = errcode.ServeJSON(w, errcode.ErrorCodeUnsupported)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if !h.allows(w, r, name, token.Pull) {
		return
	}
	d, err := digest.Parse(subject)
	if err != nil {
		_ = errcode.ServeJSON(w, errcode.ErrorCodeDigestInvalid.WithDetail(subject))
		return
	}
	artifactType := r.URL.Query().Get("artifactType")
	page, next, err := h.registry.Referrers(ctx, name, d, artifactType, r.URL.Query().Get("last"))
	if err != nil {
		h.log.Error(err, "Failed to list referrers", "repository", name)
		refuse(w, registry.Unavailable)
		return
	}
	w.Header().Set("Content-Type", v1.MediaTypeImageIndex)
	if artifactType != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	if next != "" {
		query := url.Values{"last": {next}}
		if artifactType != "" {
			query.Set("artifactType", artifactType)
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), query.Encode()))
	}
	if page == nil {
		page = []json.RawMessage{}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "mediaType": v1.MediaTypeImageIndex, "manifests": page}) // the client may have gone
}
