package auth_test

import (
	"context"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/feature"
)

func TestFeature_hidesItsEndpointsUnlessEnabled(t *testing.T) {
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin))
	get := func(context.Context, auth.Instance, *endpoint.None) (int, error) { return 1, nil }
	f.Serve(endpoint.Table{
		endpoint.Get("/certificates", get).Feature(feature.SSHCertificates),
		endpoint.Get("/version", get),
	})
	const off, on = `404 {"message":"404 Not Found"}`, "200 1"
	for _, tt := range []struct{ stored, want, anonymous string }{
		{"", off, off},
		{"true", on, `401 {"message":"401 Unauthorized"}`},
		{"false", off, off},
	} {
		if tt.stored != "" {
			f.Feature(feature.SSHCertificates, tt.stored == "true")
		}
		if got := f.As("root", "GET /certificates", "").String(); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.stored, got, tt.want)
		}
		if got := f.As("", "GET /certificates", "").String(); got != tt.anonymous {
			t.Errorf("%q, without a token: got %s, want %s", tt.stored, got, tt.anonymous)
		}
		if got := f.As("root", "GET /version", "").String(); got != on {
			t.Errorf("%q, without a feature: got %s", tt.stored, got)
		}
	}
}
