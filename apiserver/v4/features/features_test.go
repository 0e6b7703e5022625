package features_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/features"
	"github.com/forgeplane/forgeplane/internal/feature"
)

func serve(t *testing.T) *Forge {
	t.Helper()
	f := New(t, User("root", 1, Admin), User("ann", 2))
	return f.Serve(features.New(f.Kit).Table())
}

// states returns the state of each feature, on or off, as GET /features shows it.
func states(t *testing.T, f *Forge) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, shown := range Decode[[]features.Feature](t, f.As("root", "GET /features", "")) {
		NewWithT(t).Expect(shown.Gates).To(Equal([]features.Gate{{Key: "boolean", Value: shown.State == "on"}}))
		all[shown.Name] = shown.State
	}
	return all
}

func TestFeatures_areTurnedOnAndOffAndReset(t *testing.T) {
	g := NewWithT(t)
	f := serve(t)
	const name, other = feature.SSHCertificates, feature.ChangelogCommitsLimitation
	g.Expect(states(t, f)).To(Equal(map[string]string{
		other: "on", name: "off", feature.JobTokenRegistry: "off", feature.MergeRequestApprovedFilter: "off", feature.RestrictMergeStatusRecheck: "off",
	}))
	g.Expect(f.As("root", "DELETE /features/"+name, "").String()).To(Equal("204"))

	set := f.As("root", "POST /features/"+name, `{"value":true,"key":"","feature_group":"","user":"","group":"","namespace":"","project":"","repository":"","force":false}`)
	g.Expect(set.Code).To(Equal(201))
	g.Expect(set.Body).To(MatchJSON(`{"name":"` + name + `","state":"on","gates":[{"key":"boolean","value":true}],"definition":{"name":"` + name + `",
		"introduced_by_url":null,"rollout_issue_url":null,"milestone":null,"log_state_changes":null,"type":"ops","group":null,"default_enabled":false}}`))
	g.Expect(f.As("root", "POST /features/"+other+"?value=false", "").Code).To(Equal(201))
	g.Expect(states(t, f)).To(And(HaveKeyWithValue(name, "on"), HaveKeyWithValue(other, "off")))

	values := f.Features.Values()
	g.Expect(f.Client.Get(t.Context(), client.ObjectKeyFromObject(values), values)).To(Succeed())
	g.Expect(values.Data).To(Equal(map[string]string{name: "true", other: "false"}))

	g.Expect(f.As("root", "DELETE /features/"+name, "").String()).To(Equal("204"))
	g.Expect(f.As("root", "DELETE /features/none", "").String()).To(Equal("204"))
	g.Expect(states(t, f)).To(And(HaveKeyWithValue(name, "off"), HaveKeyWithValue(other, "off")))

	defined := Decode[[]features.Definition](t, f.As("root", "GET /features/definitions", ""))
	g.Expect(defined).To(HaveLen(len(feature.Definitions())))
	g.Expect(defined[0]).To(Equal(features.Definition{Name: other, Type: "ops", DefaultEnabled: true}))
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	f := serve(t)
	const all = `400 {"message":"400 Bad request - A feature is on or off for everyone: it cannot be on for only some requests, users, groups or projects"}`
	for _, tt := range []struct{ as, request, body, want string }{
		{"root", "POST /features/dark_mode", `{"value":true}`, `400 {"message":"400 Bad request - The feature does not exist: name one of ` + feature.Names() + `"}`},
		{"root", "POST /features/mr_approved_filter", "", `400 {"error":"value is missing"}`},
		{"root", "POST /features/mr_approved_filter", `{"value":25}`, `400 {"error":"value is invalid"}`},
		{"root", "POST /features/mr_approved_filter", `{"value":true,"key":"percentage_of_actors"}`, all},
		{"root", "POST /features/mr_approved_filter", `{"value":true,"user":"ann"}`, all},
		{"root", "POST /features/mr_approved_filter", `{"value":true,"project":"a/b"}`, all},
		{"ann", "POST /features/mr_approved_filter", `{"value":true}`, `403 {"message":"403 Forbidden"}`},
		{"ann", "GET /features", "", `403 {"message":"403 Forbidden"}`},
		{"", "GET /features/definitions", "", `401 {"message":"401 Unauthorized"}`},
	} {
		if got := f.As(tt.as, tt.request, tt.body).String(); got != tt.want {
			t.Errorf("%s of %q with %s\ngot  %s\nwant %s", tt.request, tt.as, tt.body, got, tt.want)
		}
	}
	if got := states(t, f)[feature.MergeRequestApprovedFilter]; got != "off" {
		t.Errorf("what is refused has turned it %s", strings.ToUpper(got))
	}
}
