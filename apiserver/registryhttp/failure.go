package registryhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/go-logr/logr"

	"github.com/forgeplane/forgeplane/internal/registry"
)

// outcome is the answer to a request. The library answers 500 with the text of the error if it cannot reach the storage, and to some mistakes of
// clients. The outcome says both apart, and shows nothing of the storage. If the request was refused, it answers with the refusal instead.
type outcome struct {
	http.ResponseWriter
	refusal *registry.Refusal
	// manifest is the body of the push of a manifest; nil for other requests.
	manifest *manifestBody
	begun    bool
	failed   *bytes.Buffer
}

// WriteHeader implements http.ResponseWriter. The first one counts.
func (o *outcome) WriteHeader(status int) {
	if o.begun {
		return
	}
	o.begun = true
	if status == http.StatusInternalServerError || status >= http.StatusBadRequest && (o.refusal.Err() != nil || o.long()) {
		o.failed = &bytes.Buffer{}
		return
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (o *outcome) Write(p []byte) (int, error) {
	o.begun = true
	if o.failed != nil {
		return o.failed.Write(p)
	}
	return o.ResponseWriter.Write(p)
}

// long reports whether the request was the push of a manifest that is too long.
func (o *outcome) long() bool { return o.manifest != nil && o.manifest.length > maxManifest }

// Unwrap is for http.ResponseController.
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// end answers a failure.
func (o *outcome) end(r *http.Request, log logr.Logger) {
	if o.failed == nil {
		return
	}
	o.Header().Del("Content-Length")
	if o.long() {
		refuseLong(o.ResponseWriter)
		return
	}
	if err := o.refusal.Err(); err != nil {
		refuse(o.ResponseWriter, err)
		return
	}
	var said struct {
		Errors []struct {
			Detail any `json:"detail"`
		} `json:"errors"`
	}
	detail := ""
	if json.Unmarshal(o.failed.Bytes(), &said) == nil && len(said.Errors) > 0 {
		detail, _ = said.Errors[0].Detail.(string)
	}
	refuse(o.ResponseWriter, o.reason(r, log, detail))
}

// refuse answers with an error. If the registry is only unavailable, it says when to come again.
func refuse(w http.ResponseWriter, err error) {
	var coded errcode.ErrorCoder
	if errors.As(err, &coded) && coded.ErrorCode() == errcode.ErrorCodeUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	_ = errcode.ServeJSON(w, err) // the client may have gone
}

// reason returns the error for a failure with a detail.
func (o *outcome) reason(r *http.Request, log logr.Logger, detail string) error {
	switch {
	case strings.HasPrefix(detail, "invalid content range"):
		return errcode.ErrorCodeRangeInvalid
	case strings.HasPrefix(detail, "bad Content-Type"):
		return errcode.ErrorCodeUnsupported.WithMessage("the Content-Type must be application/octet-stream")
	}
	if r.Context().Err() == nil {
		log.Error(nil, "Failed to serve a request to the container registry", "method", r.Method, "path", r.URL.Path, "reason", detail)
	}
	return errcode.ErrorCodeUnavailable.WithMessage(unreachable)
}

// unreachable is the message for a failure of the storage.
const unreachable = "the storage of the images does not answer at the moment: try again later"
