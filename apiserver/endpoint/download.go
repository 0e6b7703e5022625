package endpoint

import (
	"net/http"
	"net/url"
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

// Attachment returns the headers of a Content that browsers save under a name, instead of showing it. Clients that do not know filename* get the name
// in ASCII.
func Attachment(name string) http.Header {
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, name)
	encoded := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return http.Header{"Content-Disposition": {`attachment; filename="` + plain + `"; filename*=UTF-8''` + encoded}}
}
