package files_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/ratelimit"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// To compute the digest of a large file costs as much as to send the file, and every kind of request needs the digest.
func TestLargeFiles_areRateLimitedBeforeHashing(t *testing.T) {
	c := gittest.New(t, "sha1")
	for i := range 4 {
		c.Commit(t, fmt.Sprint("large", i), strings.Repeat(fmt.Sprint(i), 10<<20+1))
	}
	c.Commit(t, "small", "small")
	s := newShop(t, c)
	limited := ratelimit.New(ratelimit.Options{Endpoints: true, Costly: map[string]int{"file": 2}, Clock: s.Clock}).Handler(s)
	for _, ask := range []struct {
		method, file string
		want         int
	}{
		{http.MethodHead, "large0?ref=main", 200}, {http.MethodGet, "large1/raw", 200},
		{http.MethodHead, "large2?ref=main", 429}, {http.MethodGet, "large3/raw", 429}, {http.MethodHead, "large3/raw", 429},
		{http.MethodHead, "large0?ref=main", 200}, {http.MethodHead, "large1?ref=main", 200}, {http.MethodGet, "small?ref=main", 200},
	} {
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), ask.method, at+ask.file, http.NoBody))
		if w.Code != ask.want {
			t.Errorf("%s %s: got %d %.200s, want %d", ask.method, ask.file, w.Code, w.Body, ask.want)
		}
	}
}
