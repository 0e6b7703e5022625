package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

func TestPayload_hasAllParametersButCredentials(t *testing.T) {
	type request struct {
		Token   string           `param:"token"`
		Payload endpoint.Payload `payload:"token"`
	}
	h := endpoint.NewHandler(endpoint.Options{Guard: open{}}, endpoint.Table{
		endpoint.Post("/trigger", func(_ context.Context, _ endpoint.None, r *request) (string, error) { return string(r.Payload), nil }),
	})
	for _, tt := range []struct{ query, kind, body, want string }{
		{"token=secret&a=1", "application/json", `{"b":[1.50,null],"private_token":"secret","c":{"d":true}}`, `{"a":"1","b":[1.50,null],"c":{"d":true}}`},
		{"", "application/x-www-form-urlencoded", "token=secret&v[A]=x+y&l[]=1", `{"l":["1"],"v":{"A":"x y"}}`},
		{"", "", "", `{}`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/trigger?"+tt.query, strings.NewReader(tt.body))
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var text string
		NewWithT(t).Expect(json.Unmarshal(w.Body.Bytes(), &text)).To(Succeed(), w.Body.String())
		NewWithT(t).Expect(text).To(MatchJSON(tt.want), tt.body)
	}
}

func TestConceal_leavesParametersToTheEndpointAlone(t *testing.T) {
	g := NewWithT(t)
	type request struct {
		Token string   `param:"token"`
		Names []string `param:"names"`
	}
	h := endpoint.NewHandler(endpoint.Options{Guard: open{}}, endpoint.Table{
		endpoint.Get("/x", func(_ context.Context, _ endpoint.None, r *request) (string, error) {
			return r.Token + " " + strings.Join(r.Names, ","), nil
		}),
	})
	for query, shown := range map[string]string{
		"names[]=b&token=secret&names[]=a": "names[]=b&names[]=a", "to%6ben=secret&names[]=b&names[]=a": "names[]=b&names[]=a",
	} {
		r := endpoint.Conceal(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x?"+query, http.NoBody), "token", "other")
		g.Expect(r.URL.RawQuery).To(Equal(shown))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		g.Expect(w.Body.String()).To(Equal(`"secret b,a"`))
	}
}
