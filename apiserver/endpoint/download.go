package endpoint

import "net/http"

// Download refuses browsers that fetch the answer for a page of another site (406), which would have the forge serve its files.
// Whoever follows a link gets it.
func (e *Endpoint) Download() *Endpoint {
	e.download = true
	return e
}

// hotlinked reports whether a browser says so; other clients say nothing of it.
func hotlinked(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
