package protectedbranches_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
)

func declared(name, branch string, id int64, of v1alpha1.ProtectedBranchSpec) *v1alpha1.ProtectedBranch {
	of.ID, of.Branch = id, branch
	of.Push = []v1alpha1.AccessLevel{{Role: v1alpha1.AccessMaintainer}}
	of.Merge = of.Push
	of.Unprotect = of.Push
	return &v1alpha1.ProtectedBranch{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name}, Spec: of}
}

// newForge returns a forge with the projects web, which protects main, and secret. Their group protects release/*.
func newForge(t *testing.T, more ...client.Object) *familytest.Forge {
	t.Helper()
	f := familytest.New(t, append([]client.Object{
		familytest.User("root", 1, familytest.Admin), familytest.User("mary", 2), familytest.User("dora", 3),
		familytest.User("gus", 4), familytest.User("otto", 5),
		familytest.Group("acme", "acme", 10, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "web", 20, "acme", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "secret", 21, "acme", v1alpha1.VisibilityPrivate),
		familytest.InGroup("acme", "acme", "mary", v1alpha1.RoleMaintainer),
		familytest.InGroup("acme", "acme", "dora", v1alpha1.RoleDeveloper),
		familytest.InGroup("acme", "acme", "gus", v1alpha1.RoleGuest),
		declared("main", "main", 30, v1alpha1.ProtectedBranchSpec{ProjectRef: &v1alpha1.Reference{Name: "web"}}),
		declared("releases", "release/*", 31, v1alpha1.ProtectedBranchSpec{GroupRef: &v1alpha1.Reference{Name: "acme"}}),
	}, more...)...)
	return f.Serve(New(f.Kit).Table())
}

func TestListProtectedBranches_includesInheritedProtections(t *testing.T) {
	f := newForge(t)
	all := familytest.Decode[[]Branch](t, f.As("mary", "GET /projects/acme%2Fweb/protected_branches", ""))
	if len(all) != 2 || all[0].Name != "main" || all[0].Inherited || all[1].Name != "release/*" || !all[1].Inherited {
		t.Errorf("got %+v", all)
	}
	if found := familytest.Decode[[]Branch](t, f.As("mary", "GET /projects/20/protected_branches?search=LEAS", "")); len(found) != 1 {
		t.Errorf("the search found %+v", found)
	}
	if got := f.As("mary", "DELETE /projects/20/protected_branches/release%2F*", ""); got.Code != http.StatusNotFound {
		t.Errorf("an inherited protection was removed through a project: %s", got)
	}
}

func TestProtectedBranch_canHaveSpecialCharacters(t *testing.T) {
	for _, name := range []string{"feat/*", "a.b", "50%", "a+b", "ветка", "*-stable"} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			body := fmt.Sprintf(`{"name":%q}`, name)
			if got := f.As("mary", "POST /projects/20/protected_branches", body); got.Code != http.StatusCreated {
				t.Fatalf("got %s", got)
			}
			escaped := strings.NewReplacer("%", "%25", "/", "%2F", "*", "%2A", ".", "%2E", "+", "%2B").Replace(name)
			got := f.As("mary", "GET /projects/20/protected_branches/"+escaped, "")
			if b := familytest.Decode[Branch](t, got); got.Code != http.StatusOK || b.Name != name {
				t.Errorf("got %s", got)
			}
			if got := f.As("mary", "DELETE /projects/20/protected_branches/"+escaped, ""); got.Code != http.StatusNoContent || got.Body != "" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestInvalidRequests_areRefusedWithAReason(t *testing.T) {
	tests := []struct{ request, body, want string }{
		{"POST /projects/20/protected_branches", `{}`, `400 {"error":"name is missing"}`},
		{"POST /projects/20/protected_branches", `{"name":" "}`, `400 {"error":"name is empty"}`},
		{"POST /projects/20/protected_branches", `{"name":"main"}`, `409 {"message":"Protected branch 'main' already exists"}`},
		{"POST /projects/20/protected_branches", `{"name":"x","push_access_level":20}`, `400 {"error":"push_access_level does not have a valid value"}`},
		{"POST /projects/20/protected_branches", `{"name":"x","unprotect_access_level":0}`, `400 {"error":"unprotect_access_level does not have a valid value"}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_push":[{}]}`, `400 {"error":"access_level, user_id, group_id, deploy_key_id are missing, exactly one parameter must be provided"}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_push":[{"access_level":40},{"access_level":40}]}`, `422 {"message":["Push access levels access level has already been taken"]}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_push":[{"user_id":999}]}`, `422 {"message":["Push access levels user with id 999: not found"]}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_merge":[{"user_id":2},{"user_id":2}]}`, `422 {"message":["Merge access levels access level has already been taken"]}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_unprotect":[{"group_id":999}]}`, `422 {"message":["Unprotect access levels group with id 999: not found"]}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_push":[{"access_level":40,"user_id":2}]}`, `400 {"error":"access_level, user_id are mutually exclusive"}`},
		{"PATCH /projects/20/protected_branches/main", `{"allowed_to_merge":[{"deploy_key_id":1,"user_id":2,"group_id":10}]}`, `400 {"error":"user_id, group_id, deploy_key_id are mutually exclusive"}`},
		{"PATCH /projects/20/protected_branches/main", `{"allowed_to_merge":[{"access_level":40}]}`, `422 {"message":["Merge access levels access level has already been taken"]}`},
		{"PATCH /projects/20/protected_branches/main", `{"allowed_to_unprotect":[{"access_level":40}]}`, `422 {"message":["Unprotect access levels access level has already been taken"]}`},
		{"POST /projects/20/protected_branches", `{"name":"a b"}`, `422 {"message":["Name must be the name of a branch or a wildcard"]}`},
		{
			"POST /projects/20/protected_branches", `{"name":"refs/heads/prod"}`,
			`422 {"message":["Name matches no branch, because it begins with refs/: write prod, not refs/heads/prod"]}`,
		},
		{"POST /projects/20/protected_branches", `{"name":"` + strings.Repeat("a", 256) + `"}`, `422 {"message":["Name is too long (maximum is 255 characters)"]}`},
		{"POST /projects/20/protected_branches", `{"name":"x","allowed_to_unprotect":[{"access_level":0}]}`, `422 {"message":["Unprotect access levels access level is not included in the list"]}`},
		{"POST /projects/20/protected_branches?name=x&allow_force_push=", ``, `400 {"error":"allow_force_push is empty"}`},
		{"GET /projects/20/protected_branches/none", ``, `404 {"message":"404 Not found"}`},
		{"PATCH /projects/20/protected_branches/none", `{}`, `404 {"message":"404 Not found"}`},
		{"PATCH /projects/20/protected_branches/main", `{"allow_force_push":""}`, `400 {"error":"allow_force_push is empty"}`},
		{"PATCH /projects/20/protected_branches/main", `{"allow_force_push":null}`, `400 {"error":"allow_force_push is empty"}`},
		{"PATCH /projects/20/protected_branches/main?allow_force_push=", ``, `400 {"error":"allow_force_push is empty"}`},
		{"PATCH /projects/20/protected_branches/main", `{"allowed_to_push":[{"id":999,"_destroy":true}]}`, `404 {"message":"404 Not found"}`},
		{"DELETE /projects/20/protected_branches/none", ``, `404 {"message":"404 Not found"}`},
		{"GET /projects/99/protected_branches", ``, `404 {"message":"404 Project Not Found"}`},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.body, func(t *testing.T) {
			if got := newForge(t).As("mary", tt.request, tt.body); got.String() != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNoOne_isLeftOutBesideOthers(t *testing.T) {
	f := newForge(t)
	pushers := func(request, body string) (all []string) {
		t.Helper()
		for _, l := range familytest.Decode[Branch](t, f.As("mary", request, body)).PushAccessLevels {
			all = append(all, l.AccessLevelDescription)
		}
		return all
	}
	const made, changed = "POST /projects/20/protected_branches", "PATCH /projects/20/protected_branches/alone"
	if got := pushers(made, `{"name":"both","push_access_level":0,"allowed_to_push":[{"access_level":30}]}`); !slices.Equal(got, []string{"Developers + Maintainers"}) {
		t.Errorf("got %q", got)
	}
	if got := pushers(made, `{"name":"alone","push_access_level":0}`); !slices.Equal(got, []string{"No one"}) {
		t.Errorf("got %q", got)
	}
	if got := pushers(changed, `{"allowed_to_push":[{"access_level":30}]}`); !slices.Equal(got, []string{"Developers + Maintainers"}) {
		t.Errorf("a level was added: got %q", got)
	}
	if got := pushers(changed, `{"allowed_to_push":[{"access_level":0}]}`); !slices.Equal(got, []string{"Developers + Maintainers"}) {
		t.Errorf("No one was added: got %q", got)
	}
}

func TestAccessLevels_areChangedInPlace(t *testing.T) {
	f := newForge(t)
	made := familytest.Decode[Branch](t, f.As("mary", "POST /projects/20/protected_branches",
		`{"name":"x","push_access_level":40,"allowed_to_push":[{"user_id":3}]}`))
	if len(made.PushAccessLevels) != 2 || len(made.MergeAccessLevels) != 1 || len(made.UnprotectAccessLevels) != 1 {
		t.Fatalf("got %+v", made)
	}
	role, user := made.PushAccessLevels[0], made.PushAccessLevels[1]
	if role.AccessLevelDescription != "Maintainers" || *role.AccessLevel != 40 || *user.UserID != 3 || user.AccessLevel != nil || role.ID == user.ID {
		t.Errorf("got %+v and %+v", role, user)
	}

	body := fmt.Sprintf(`{"allowed_to_push":[{"id":%d,"access_level":30},{"id":%d,"_destroy":true},{"group_id":10}]}`, role.ID, user.ID)
	changed := familytest.Decode[Branch](t, f.As("mary", "PATCH /projects/20/protected_branches/x", body))
	if len(changed.PushAccessLevels) != 2 {
		t.Fatalf("got %+v", changed)
	}
	if got := changed.PushAccessLevels[0]; got.ID != role.ID || *got.AccessLevel != 30 {
		t.Errorf("the changed level is %+v", got)
	}
	if got := changed.PushAccessLevels[1]; got.ID == role.ID || got.ID == user.ID || *got.GroupID != 10 {
		t.Errorf("the new level is %+v", got)
	}
	if changed.MergeAccessLevels[0].ID != made.MergeAccessLevels[0].ID || changed.ID != made.ID {
		t.Error("what was not changed has another id")
	}
}

func TestAccessLevels_acceptOnlyMembersAndParentGroups(t *testing.T) {
	tests := map[string]struct {
		level   string
		refused string
	}{
		"a guest":                          {`"user_id":4`, ""},
		"an administrator":                 {`"user_id":1`, ""},
		"a member of the project":          {`"user_id":6`, ""},
		"a user without a role":            {`"user_id":5`, "user with id 5"},
		"a former member":                  {`"user_id":7`, "user with id 7"},
		"a user who does not exist":        {`"user_id":999`, "user with id 999"},
		"the group of the project":         {`"group_id":11`, ""},
		"the group above":                  {`"group_id":10`, ""},
		"a private group of the namespace": {`"group_id":12`, "group with id 12"},
		"a public sibling group":           {`"group_id":13`, "group with id 13"},
		"a subgroup":                       {`"group_id":14`, "group with id 14"},
		"a group of another namespace":     {`"group_id":15`, "group with id 15"},
		"a group that does not exist":      {`"group_id":999`, "group with id 999"},
	}
	past := familytest.InProject("acme", "app", "fred", v1alpha1.RoleDeveloper)
	past.Spec.ExpiresAt = &metav1.Time{Time: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	f := newForge(t,
		familytest.User("mark", 6), familytest.User("fred", 7), past,
		familytest.Group("acme", "sub", 11, "acme", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "hidden", 12, "", v1alpha1.VisibilityPrivate),
		familytest.Group("acme", "beside", 13, "acme", v1alpha1.VisibilityPublic),
		familytest.Group("acme", "below", 14, "sub", v1alpha1.VisibilityPublic),
		familytest.Group("other", "other", 15, "", v1alpha1.VisibilityPublic),
		familytest.Project("acme", "app", 22, "sub", v1alpha1.VisibilityPublic),
		familytest.InProject("acme", "app", "mark", v1alpha1.RoleReporter),
		declared("app", "app", 33, v1alpha1.ProtectedBranchSpec{ProjectRef: &v1alpha1.Reference{Name: "app"}}),
	)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			branch := strings.ReplaceAll(name, " ", "-")
			made := f.As("mary", "POST /projects/22/protected_branches", fmt.Sprintf(`{"name":%q,"allowed_to_push":[{%s}]}`, branch, tt.level))
			changed := f.As("mary", "PATCH /projects/22/protected_branches/app", fmt.Sprintf(`{"allowed_to_merge":[{%s}]}`, tt.level))
			if tt.refused == "" {
				if made.Code != http.StatusCreated || changed.Code != http.StatusOK {
					t.Errorf("got %s and %s", made, changed)
				}
				return
			}
			want := `422 {"message":["%s access levels ` + tt.refused + `: not found"]}`
			if made.String() != fmt.Sprintf(want, "Push") || changed.String() != fmt.Sprintf(want, "Merge") {
				t.Errorf("got %s and %s\nwant %s", made, changed, want)
			}
		})
	}
}

// setRESTWrites sets the policy of web for changes over REST.
func setRESTWrites(t *testing.T, f *familytest.Forge, policy v1alpha1.RESTWrites) {
	t.Helper()
	p := &v1alpha1.Project{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p); err != nil {
		t.Fatal(err)
	}
	p.Spec.RESTWrites = policy
	if err := f.Client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestRESTWrites_canBeRefusedByAProject(t *testing.T) {
	for policy, want := range map[v1alpha1.RESTWrites]int{v1alpha1.RESTWritesAllow: 204, v1alpha1.RESTWritesRefuse: 403} {
		t.Run(string(policy), func(t *testing.T) {
			f := newForge(t)
			setRESTWrites(t, f, policy)
			if got := f.As("mary", "DELETE /projects/20/protected_branches/main", ""); got.Code != want {
				t.Errorf("got %s, want %d", got, want)
			}
		})
	}
}

// TestCachedProtections_areForgottenWithTheFormerGroup moves the project at each point of a request, and then lists its
// protections again.
func TestCachedProtections_areForgottenWithTheFormerGroup(t *testing.T) {
	for nth := 1; ; nth++ {
		f := newForge(t, familytest.Group("acme", "other", 11, "", v1alpha1.VisibilityPublic))
		moved := f.During(nth, func() { f.Move("acme/web", "other") })
		f.As("root", "GET /projects/20/protected_branches", "")
		if !moved() {
			if nth < 3 {
				t.Errorf("it was moved %d times", nth-1)
			}
			return
		}
		if all := familytest.Decode[[]Branch](t, f.As("root", "GET /projects/20/protected_branches", "")); len(all) != 1 || all[0].Name != "main" {
			t.Errorf("moved at %d, it has %+v", nth, all)
		}
	}
}

func TestGroupLevels_endWithTheShare(t *testing.T) {
	f := newForge(t, familytest.Group("other", "bolt", 15, "", v1alpha1.VisibilityPublic))
	ends := f.Clock.Now().Add(time.Hour)
	p := &v1alpha1.Project{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "web"}, p); err != nil {
		t.Fatal(err)
	}
	p.Spec.SharedWith = []v1alpha1.Share{{
		GroupRef: v1alpha1.Reference{Path: "bolt"}, Role: v1alpha1.RoleDeveloper, ExpiresAt: &metav1.Time{Time: ends},
	}}
	if err := f.Client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	protect := func(branch string) familytest.Answer {
		return f.As("mary", "POST /projects/20/protected_branches", fmt.Sprintf(`{"name":%q,"allowed_to_push":[{"group_id":15}]}`, branch))
	}
	if got := protect("shared"); got.Code != http.StatusCreated {
		t.Fatalf("got %s", got)
	}
	pushers := func() []Level {
		return familytest.Decode[Branch](t, f.As("mary", "GET /projects/20/protected_branches/shared", "")).PushAccessLevels
	}
	if got := pushers(); len(got) != 1 || *got[0].GroupID != 15 {
		t.Errorf("got %+v", got)
	}
	f.Clock.SetTime(ends)
	if got := pushers(); len(got) != 0 {
		t.Errorf("after the end: got %+v", got)
	}
	if got, want := protect("late").String(), `422 {"message":["Push access levels group with id 15: not found"]}`; got != want {
		t.Errorf("after the end: got %s, want %s", got, want)
	}
}
