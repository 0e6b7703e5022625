package auth

import (
	"net/http"
	"strings"
)

// What clients send access tokens in (API behaviour, section 1.2), beside the header Authorization.
const (
	tokenHeader     = "PRIVATE-TOKEN"
	tokenParameter  = "private_token"
	bearerParameter = "access_token"
	// parameters is in the names of both, so that a query without it need not be parsed.
	parameters = "token"
)

// token returns the access token of a request, and whether it was sent as OAuth 2.0 has it.
func token(r *http.Request) (value string, bearer bool) {
	if v := r.Header.Get(tokenHeader); v != "" {
		return v, false
	}
	if scheme, v, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(v), true
	}
	if !strings.Contains(r.URL.RawQuery, parameters) {
		return "", false
	}
	query := r.URL.Query()
	if v := query.Get(tokenParameter); v != "" {
		return v, false
	}
	return query.Get(bearerParameter), true
}

// HideToken takes an access token out of the query, which ends up in logs, into a header, which does not. It changes the
// request's URL and replaces its header.
func HideToken(r *http.Request) {
	if !strings.Contains(r.URL.RawQuery, parameters) {
		return
	}
	query := r.URL.Query()
	for _, name := range []string{tokenParameter, bearerParameter} {
		if value := query.Get(name); value != "" && r.Header.Get(tokenHeader) == "" {
			r.Header = r.Header.Clone()
			r.Header.Set(tokenHeader, value)
		}
		query.Del(name)
	}
	r.URL.RawQuery = query.Encode()
}
