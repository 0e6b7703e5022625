package protectedbranches_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
)

// newTree is newForge with the group sub below acme, which olga owns, and the project app in it, which has a deploy key.
func newTree(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	key := &v1alpha1.DeployKey{Spec: v1alpha1.DeployKeySpec{
		ID: 40, ProjectRef: v1alpha1.Reference{Name: "app"}, Title: "Robot", Access: v1alpha1.DeployKeyReadWrite,
		PublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1PpB+KGusIoz8/UE8m1sWbgH6pSCGQjXdCWsyU0VQe",
	}}
	key.Namespace, key.Name = "acme", "robot"
	return newForge(t, append([]client.Object{
		familytest.User("olga", 6), familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic),
		familytest.InGroup("acme", "sub", "olga", v1alpha1.RoleOwner),
		familytest.Project("acme", "app", 22, "sub", v1alpha1.VisibilityPublic), key,
	}, more...)...)
}

func TestGroupProtections_areInheritedDownwards(t *testing.T) {
	f := newTree(t)
	made := f.As("olga", "POST /groups/acme%2Fsub/protected_branches", `{"name":"main","push_access_level":0,"allow_force_push":true}`)
	if b := familytest.Decode[Branch](t, made); made.Code != http.StatusCreated || b.Inherited || !b.AllowForcePush || *b.PushAccessLevels[0].AccessLevel != 0 {
		t.Errorf("got %s", made)
	}
	if got := f.As("olga", "POST /groups/11/protected_branches", `{"name":"main"}`); got.String() != `409 {"message":"Protected branch 'main' already exists"}` {
		t.Errorf("a second one: got %s", got)
	}
	list := func(user, request string) (all []string) {
		t.Helper()
		for _, b := range familytest.Decode[[]Branch](t, f.As(user, request, "")) {
			all = append(all, fmt.Sprintf("%s %t", b.Name, b.Inherited))
		}
		return all
	}
	for request, want := range map[string][]string{
		"GET /groups/11/protected_branches":            {"release/* true", "main false"},
		"GET /groups/11/protected_branches?search=MAI": {"main false"},
		"GET /groups/10/protected_branches":            {"release/* false"},
		"GET /projects/22/protected_branches":          {"release/* true", "main true"},
		"GET /projects/20/protected_branches":          {"main false", "release/* true"},
	} {
		if got := list("root", request); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", request, got, want)
		}
	}
	if got := f.As("root", "POST /projects/22/protected_branches", `{"name":"main"}`); got.Code != http.StatusCreated {
		t.Errorf("the same branch in a project: got %s", got)
	}
	for _, request := range []string{"PATCH /groups/11/protected_branches/release%2F%2A", "DELETE /groups/11/protected_branches/release%2F%2A"} {
		if got := f.As("olga", request, `{"allow_force_push":true}`); got.String() != `404 {"message":"404 Not found"}` {
			t.Errorf("%s, which is inherited: got %s", request, got)
		}
	}
	changed := f.As("olga", "PATCH /groups/11/protected_branches/main", `{"allowed_to_merge":[{"user_id":6},{"group_id":10}]}`)
	if b := familytest.Decode[Branch](t, changed); changed.Code != http.StatusOK || len(b.MergeAccessLevels) != 3 || b.Inherited {
		t.Errorf("got %s", changed)
	}
	if got := f.As("olga", "DELETE /groups/11/protected_branches/main", ""); got.String() != "204" {
		t.Errorf("got %s", got)
	}
}

func TestGroupProtections_havePlainObjects(t *testing.T) {
	f := newTree(t, familytest.Project("acme", "sub", 23, "sub", v1alpha1.VisibilityPublic))
	for _, of := range []string{"groups/11", "projects/23"} { // the group and the project have the same name
		if got := f.As("root", "POST /"+of+"/protected_branches", `{"name":"stable"}`); got.Code != http.StatusCreated {
			t.Errorf("%s: got %s", of, got)
		}
	}
	var all v1alpha1.ProtectedBranchList
	if err := f.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	of := f.Named(&v1alpha1.Group{}, "acme/sub")
	if !slices.ContainsFunc(all.Items, func(b v1alpha1.ProtectedBranch) bool {
		return b.Spec.GroupRef != nil && *b.Spec.GroupRef == of && b.Spec.ProjectRef == nil && b.OwnerReferences[0].Kind == "Group"
	}) {
		t.Errorf("got %+v", all.Items)
	}
}

func TestGroupAccessLevels_acceptOnlyMembersAndParentGroups(t *testing.T) {
	f := newTree(t, familytest.Group("acme", "beside", 13, "acme", v1alpha1.VisibilityPublic), familytest.InProject("acme", "app", "otto", v1alpha1.RoleDeveloper))
	number := 0
	for level, refused := range map[string]string{
		`"user_id":6`: "", `"user_id":2`: "", `"group_id":10`: "", `"group_id":11`: "", `"access_level":60`: "",
		`"user_id":5`: "user with id 5", `"group_id":13`: "group with id 13",
		`"deploy_key_id":40`: "deploy key with id 40", `"deploy_key_id":999`: "deploy key with id 999",
	} {
		number++
		got := f.As("olga", "POST /groups/11/protected_branches", fmt.Sprintf(`{"name":"branch-%d","allowed_to_push":[{%s}]}`, number, level))
		if refused == "" && got.Code != http.StatusCreated || refused != "" && got.String() != `422 {"message":["Push access levels `+refused+`: not found"]}` {
			t.Errorf("%s: got %s", level, got)
		}
	}
}

func TestGroupUnprotectLevels_decideWhoChangesAProtection(t *testing.T) {
	f := newTree(t)
	for body, want := range map[string]int{
		`{"name":"everyone"}`:                                    http.StatusNoContent,
		`{"name":"admins","unprotect_access_level":60}`:          http.StatusForbidden,
		`{"name":"olga","allowed_to_unprotect":[{"user_id":6}]}`: http.StatusNoContent,
		`{"name":"mary","allowed_to_unprotect":[{"user_id":2}]}`: http.StatusForbidden,
	} {
		b := familytest.Decode[Branch](t, f.As("olga", "POST /groups/11/protected_branches", body))
		if got := f.As("olga", "DELETE /groups/11/protected_branches/"+b.Name, ""); got.Code != want {
			t.Errorf("%s: got %s, want %d", body, got, want)
		}
		if want == http.StatusForbidden {
			if got := f.As("root", "DELETE /groups/11/protected_branches/"+b.Name, ""); got.Code != http.StatusNoContent {
				t.Errorf("%s: an administrator got %s", body, got)
			}
		}
	}
}
