package auth

import (
	"net/http"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// Where clients send access tokens (API behaviour, section 1.2), in addition to the header Authorization.
const (
	tokenHeader     = "PRIVATE-TOKEN"
	tokenParameter  = "private_token"
	bearerParameter = "access_token"
	sudoParameter   = "sudo"
	// triggerParameter and jobParameter are the parameters of trigger tokens and of job tokens.
	triggerParameter = "token"
	jobParameter     = "job_token"
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

// HideToken returns a request whose query, which is logged, has no token: an access token is in a header, which is not logged, and endpoints get
// other tokens as before. It changes the URL of r and replaces its header.
func HideToken(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawQuery, parameters) {
		return r
	}
	r = endpoint.Conceal(r, triggerParameter, jobParameter)
	query := r.URL.Query()
	if !query.Has(tokenParameter) && !query.Has(bearerParameter) {
		return r
	}
	for _, name := range []string{tokenParameter, bearerParameter} {
		if value := query.Get(name); value != "" && r.Header.Get(tokenHeader) == "" {
			r.Header = r.Header.Clone()
			r.Header.Set(tokenHeader, value)
		}
		query.Del(name)
	}
	r.URL.RawQuery = query.Encode()
	return r
}

// CarriesJobToken reports whether a request of the REST API can have a job token: in its header, in the query, where the name can be escaped, or
// in a body.
func CarriesJobToken(r *http.Request) bool {
	return r.Header.Get(jobHeader) != "" || strings.Contains(r.URL.RawQuery, jobParameter) || strings.Contains(r.URL.RawQuery, "%") || r.ContentLength != 0
}

// SignsInAsJob reports whether the password of a request is a job token.
func SignsInAsJob(r *http.Request) bool {
	_, password, _ := r.BasicAuth()
	return strings.HasPrefix(password, pipeline.TokenPrefix)
}
