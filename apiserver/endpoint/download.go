package endpoint

import "net/http"

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
