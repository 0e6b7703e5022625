package auth

import (
	"net/http"
	"strings"
)

// Where clients send access tokens (API behaviour, section 1.2), in addition to the header Authorization.
const (
	tokenHeader     = "PRIVATE-TOKEN"
	tokenParameter  = "private_token"
	bearerParameter = "access_token"
	sudoParameter   = "sudo"
	// parameters is a part of both parameter names, so that a query without it need not be parsed.
	parameters = "token"
)

// token returns the access token of a request, and whether it was sent as a bearer token as OAuth 2.0 defines it.
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

// tokenIn is token for the parameters of a body.
func tokenIn(body map[string]string) (value string, bearer bool) {
	if v := body[tokenParameter]; v != "" {
		return v, false
	}
	return body[bearerParameter], true
}

// HideToken moves an access token from the query, which is logged, to a header, which is not. It changes the request's URL and replaces its
// header.
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
