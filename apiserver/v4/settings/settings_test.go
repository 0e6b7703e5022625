package settings_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/settings"
	"github.com/forgeplane/forgeplane/internal/quota"
)

func newForge(t *testing.T, limits quota.Limits) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin))
	f.Quotas = limits
	return f.Serve(settings.New(f.Kit).Table())
}

func TestProjectsLimit_isKept(t *testing.T) {
	f := newForge(t, quota.DefaultLimits())
	for _, tt := range []struct{ request, body, want string }{
		{"GET", "", `"default_projects_limit":1000,`},
		{"PUT", `{"default_projects_limit":42,"signup_enabled":false}`, `"default_projects_limit":42,`},
		{"GET", "", `"default_projects_limit":42,`},
		{"PUT", `{"default_projects_limit":0,"import_sources":["git"],"restricted_visibility_levels":[]}`, `"default_projects_limit":0,`},
		{"PUT", `{"default_projects_limit":null}`, `"default_projects_limit":1000,`},
	} {
		got := f.As("root", tt.request+" /application/settings", tt.body)
		if got.Code != 200 || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s %s: got %s, want %s", tt.request, tt.body, got, tt.want)
		}
	}
	if got := newForge(t, quota.Limits{}).As("root", "GET /application/settings", ""); !strings.Contains(got.Body, `"default_projects_limit":100000,`) {
		t.Errorf("got %s", got)
	}
}

func TestOtherSettings_cannotChange(t *testing.T) {
	const fixed = `["cannot be changed on this server"]`
	f := newForge(t, quota.DefaultLimits())
	for body, want := range map[string]string{
		`{"signup_enabled":true}`:                                  `{"message":{"signup_enabled":` + fixed + `}}`,
		`{"default_branch_name":null}`:                             `{"message":{"default_branch_name":` + fixed + `}}`,
		`{"import_sources":["github"],"default_projects_limit":5}`: `{"message":{"import_sources":` + fixed + `}}`,
		`{"restricted_visibility_levels":["public"]}`:              `{"message":{"restricted_visibility_levels":` + fixed + `}}`,
		`{"default_projects_limit":-1}`:                            `{"error":"default_projects_limit does not have a valid value"}`,
		`{"require_two_factor_authentication":true,"a":1}`:         `{"error":"a is not supported, require_two_factor_authentication is not supported"}`,
	} {
		if got := f.As("root", "PUT /application/settings", body).String(); got != "400 "+want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if got := f.As("root", "PUT /application/settings", "").Code; got != 400 {
		t.Errorf("got %d without a setting", got)
	}
	if got := f.As("root", "GET /application/settings", ""); !strings.Contains(got.Body, `"default_projects_limit":1000,`) {
		t.Errorf("a refused request has changed something: %s", got)
	}
}
