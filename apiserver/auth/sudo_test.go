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

func TestWhomARequestIsMadeAsIsInItsQuery(t *testing.T) {
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
	f.Serve(users.New(f.Catalog, f.Writer, familytest.WebURL, "home").Table())
	for query, username := range map[string]string{
		"": "root", "?sudo=": "root", "?sudo=otto": "otto", "?sudo=2": "mary", "?%73udo=otto": "otto", "?sudo=mary&sudo=otto": "otto",
	} {
		if got := f.With(value, "GET /user"+query, ""); !strings.Contains(got.Body, `"username":"`+username+`"`) {
			t.Errorf("%q: got %s, want %s", query, got, username)
		}
	}
	if got := f.With(value, "POST /users/3/block", `{"sudo":"mary"}`); got.Code != http.StatusBadRequest {
		t.Errorf("the administrator did it himself: %s", got)
	}
}
