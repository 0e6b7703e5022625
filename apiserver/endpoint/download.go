package endpoint

import (
	"mime"
	"net/http"
	"strings"
)

// Download refuses (406) requests that a browser makes for a page of another site, so that other sites cannot use the forge to serve files.
// Users who follow a link are served.
func (e *Endpoint) Download() *Endpoint {
	e.download = true
	return e
}

// hotlinked reports whether a browser made the request for a page of another site. Other clients do not send the header that tells.
func hotlinked(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// Attachment returns the headers of a Content that browsers save under a name, instead of showing it.
func Attachment(name string) http.Header {
	disposition := `attachment; filename="` + name + `"`
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		disposition = mime.FormatMediaType("attachment", map[string]string{"filename": name})
	}
	return http.Header{"Content-Disposition": {disposition}}
}
