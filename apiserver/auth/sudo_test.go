package auth_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
	"github.com/forgeplane/forgeplane/internal/credential"
)

func TestSudo_isReadFromTheQuery(t *testing.T) {
	const value = "a token of root that may act as others"
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("otto", 3),
		&v1alpha1.AccessToken{
			ObjectMeta: metav1.ObjectMeta{Name: "sudo"},
			Spec: v1alpha1.AccessTokenSpec{
				ID: 9, UserRef: v1alpha1.Reference{Name: "root"}, Scopes: []v1alpha1.TokenScope{v1alpha1.ScopeAPI, v1alpha1.ScopeSudo},
				SecretRef: &v1alpha1.SecretKeyReference{Name: "sudo", Key: "token"},
			},
			Status: v1alpha1.AccessTokenStatus{ID: 9, Digest: credential.Digest(value)},
		})
	f.Serve(users.New(f.Kit).Table())
	for query, username := range map[string]string{
		"": "root", "?sudo=": "root", "?sudo=otto": "otto", "?sudo=2": "mary", "?%73udo=otto": "otto", "?sudo=mary&sudo=otto": "otto",
	} {
		if got := f.With(value, "GET /user"+query, ""); !strings.Contains(got.Body, `"username":"`+username+`"`) {
			t.Errorf("%q: got %s, want %s", query, got, username)
		}
	}
	for body, username := range map[string]string{
		`{}`: "root", `{"sudo":null}`: "root", `{"sudo":"otto"}`: "otto", `{"sudo":2}`: "mary",
	} {
		if got := f.With(value, "GET /user?sudo=", body); !strings.Contains(got.Body, `"username":"`+username+`"`) {
			t.Errorf("%s: got %s, want %s", body, got, username)
		}
	}
	if got := f.With(value, "POST /users/3/block", `{"sudo":"mary"}`); got.Code != http.StatusForbidden {
		t.Errorf("the administrator did it himself: %s", got)
	}
}

func TestToken_isReadFromTheBody(t *testing.T) {
	f := familytest.New(t, familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("otto", 3))
	f.Serve(users.New(f.Kit).Table())
	of := func(parameter, username string) string {
		return `{"` + parameter + `":"` + familytest.Value(username) + `"}`
	}
	for _, tt := range []struct {
		header, body string
		want         int
	}{
		{"", of("private_token", "root"), http.StatusCreated},
		{"", of("access_token", "root"), http.StatusCreated},
		{"", of("private_token", "mary"), http.StatusForbidden},
		{"", of("private_token", "nobody"), http.StatusUnauthorized},
		{"", `{"private_token":["x"]}`, http.StatusUnauthorized},
		{"", `{}`, http.StatusUnauthorized},
		{familytest.Value("mary"), of("private_token", "root"), http.StatusForbidden},
		{familytest.Value("root"), of("private_token", "mary"), http.StatusCreated},
		{"nothing", of("private_token", "root"), http.StatusUnauthorized},
	} {
		if got := f.With(tt.header, "POST /users/3/block", tt.body); got.Code != tt.want {
			t.Errorf("%q %s: got %s, want %d", tt.header, tt.body, got, tt.want)
		}
	}
}
