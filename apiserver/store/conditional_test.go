package store_test

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/accesstokens"
	"github.com/forgeplane/forgeplane/apiserver/v4/deploykeys"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/groups"
	"github.com/forgeplane/forgeplane/apiserver/v4/members"
	"github.com/forgeplane/forgeplane/apiserver/v4/projects"
	"github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
	"github.com/forgeplane/forgeplane/apiserver/v4/users"
)

// publicKey was generated for this test; its private key no longer exists.
const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIiPXSRZ2AeMBfIMp5PjfANcw7nyQFIOFQY8jNfG1q0l"

// newForge returns a forge whose objects were all created in the first minute of 2026.
func newForge(t *testing.T) *familytest.Forge {
	t.Helper()
	ref := v1alpha1.Reference{Name: "web"}
	f := familytest.New(t,
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.InProject("acme", "web", "mary", v1alpha1.RoleDeveloper),
		&v1alpha1.ProtectedBranch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "main"},
			Spec:       v1alpha1.ProtectedBranchSpec{ID: 30, ProjectRef: &ref, Branch: "main"},
		},
		&v1alpha1.DeployKey{
			ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "key"},
			Spec:       v1alpha1.DeployKeySpec{ID: 40, ProjectRef: ref, Title: "key", PublicKey: publicKey},
		},
	)
	f.Keep(familytest.Repositories(t, f.Catalog))
	return f.Serve(
		users.New(f.Kit).Table(),
		accesstokens.New(f.Kit).Table(),
		groups.New(f.Kit).Table(),
		projects.New(f.Kit).Table(),
		members.New(f.Kit).Table(),
		deploykeys.New(f.Kit).Table(),
		protectedbranches.New(f.Kit).Table(),
	)
}

func TestDelete_refusesIfRecordWasChangedSince(t *testing.T) {
	before := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
	after := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)
	for request, success := range map[string]int{
		"DELETE /projects/20/protected_branches/main": 204,
		"DELETE /projects/20/deploy_keys/40":          204,
		"DELETE /projects/20/members/2":               204,
		"DELETE /projects/20":                         202,
		"DELETE /groups/10":                           202,
		"DELETE /users/2":                             204,
	} {
		t.Run(request, func(t *testing.T) {
			f := newForge(t)
			f.Header = http.Header{"If-Unmodified-Since": {before}}
			if got := f.As("root", request, ""); got.String() != `412 {"message":"412 Precondition Failed"}` {
				t.Errorf("changed later: got %s", got)
			}
			f.Header.Set("If-Unmodified-Since", after)
			if got := f.As("root", request, ""); got.Code != success {
				t.Errorf("not changed since: got %s, want %d", got, success)
			}
		})
	}
}

func TestRevokeToken_ignoresIfUnmodifiedSince(t *testing.T) {
	for _, request := range []string{"DELETE /personal_access_tokens/self", "DELETE /personal_access_tokens/1002"} {
		f := newForge(t)
		f.Header = http.Header{"If-Unmodified-Since": {time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Format(http.TimeFormat)}}
		if got := f.As("mary", request, ""); got.Code != http.StatusNoContent {
			t.Errorf("%s: got %s", request, got)
		}
	}
}
