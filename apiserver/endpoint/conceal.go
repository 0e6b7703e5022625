package endpoint

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// concealedKey is the context key of the parameters that Conceal has removed from the query.
type concealedKey struct{}

// Conceal returns a request whose URL, which logs contain, does not have some parameters of its query. Endpoints get them nevertheless.
func Conceal(r *http.Request, names ...string) *http.Request {
	var shown, concealed []string
	for _, pair := range strings.Split(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(names, plain) {
			concealed = append(concealed, pair)
		} else {
			shown = append(shown, pair)
		}
	}
	if len(concealed) == 0 {
		return r
	}
	r = r.WithContext(context.WithValue(r.Context(), concealedKey{}, strings.Join(concealed, "&")))
	u := *r.URL
	u.RawQuery = strings.Join(shown, "&")
	r.URL = &u
	return r
}

// rawQuery returns the query of a request, with the parameters that Conceal has removed.
func rawQuery(r *http.Request) string {
	if concealed, ok := r.Context().Value(concealedKey{}).(string); ok {
		return strings.TrimPrefix(r.URL.RawQuery+"&"+concealed, "&")
	}
	return r.URL.RawQuery
}
