package protectedbranches_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	. "github.com/forgeplane/forgeplane/apiserver/v4/protectedbranches"
)

func TestUnprotectLevels_decideWhoChangesAProtection(t *testing.T) {
	// Mary and mark are Maintainers.
	tests := map[string]struct {
		unprotect  string
		mary, mark bool
	}{
		"maintainers by default": {`"allowed_to_unprotect":[]`, true, true},
		"developers":             {`"unprotect_access_level":30`, true, true},
		"administrators":         {`"unprotect_access_level":60`, false, false},
		"a user":                 {`"allowed_to_unprotect":[{"user_id":6}]`, false, true},
		"a group":                {`"allowed_to_unprotect":[{"group_id":10}]`, true, false},
	}
	for name, tt := range tests {
		for who, allowed := range map[string]bool{"mary": tt.mary, "mark": tt.mark, "root": true} {
			t.Run(name+", "+who, func(t *testing.T) {
				f := newForge(t, familytest.User("mark", 6), familytest.InProject("acme", "web", "mark", v1alpha1.RoleMaintainer))
				made := f.As("root", "POST /projects/20/protected_branches", `{"name":"x",`+tt.unprotect+`}`)
				if made.Code != http.StatusCreated {
					t.Fatalf("got %s", made)
				}
				patched, removed := http.StatusOK, http.StatusNoContent
				if !allowed {
					patched, removed = http.StatusForbidden, http.StatusForbidden
				}
				if got := f.As(who, "PATCH /projects/20/protected_branches/x", `{"allow_force_push":true}`); got.Code != patched {
					t.Errorf("got %s, want %d", got, patched)
				}
				if got := f.As(who, "DELETE /projects/20/protected_branches/x", ""); got.Code != removed {
					t.Errorf("got %s, want %d", got, removed)
				}
			})
		}
	}
}

// remove removes all levels of the set that a parameter names.
func remove(f *familytest.Forge, parameter string, levels []Level) familytest.Answer {
	body := ""
	for _, l := range levels {
		body += fmt.Sprintf(`,{"id":%d,"_destroy":true}`, l.ID)
	}
	return f.As("root", "PATCH /projects/20/protected_branches/x", fmt.Sprintf(`{%q:[%s]}`, parameter, body[1:]))
}

func TestEmptiedLevels_areShownEmpty(t *testing.T) {
	f := newForge(t)
	made := familytest.Decode[Branch](t, f.As("mary", "POST /projects/20/protected_branches", `{"name":"x","push_access_level":30}`))
	answer := remove(f, "allowed_to_push", made.PushAccessLevels)
	if b := familytest.Decode[Branch](t, answer); b.PushAccessLevels == nil || len(b.PushAccessLevels) != 0 || len(b.MergeAccessLevels) != 1 {
		t.Errorf("got %s", answer)
	}
	var declared v1alpha1.ProtectedBranchList
	if err := f.Client.List(t.Context(), &declared); err != nil {
		t.Fatal(err)
	}
	for _, b := range declared.Items {
		if b.Spec.Branch == "x" && (len(b.Spec.Push) != 1 || b.Spec.Push[0].Role != v1alpha1.AccessNoOne) {
			t.Errorf("what is declared lets somebody through: %+v", b.Spec.Push)
		}
	}
	for _, step := range []struct {
		body string
		want int
	}{{`{"allow_force_push":true}`, 0}, {`{"allowed_to_push":[{"access_level":40}]}`, 1}} {
		f.As("mary", "PATCH /projects/20/protected_branches/x", step.body)
		b := familytest.Decode[Branch](t, f.As("mary", "GET /projects/20/protected_branches/x", ""))
		if len(b.PushAccessLevels) != step.want {
			t.Errorf("after %s there are %+v", step.body, b.PushAccessLevels)
		}
	}
}

func TestProtection_canAlwaysBeDeleted(t *testing.T) {
	f := newForge(t)
	made := familytest.Decode[Branch](t, f.As("mary", "POST /projects/20/protected_branches", `{"name":"x","unprotect_access_level":60}`))
	if left := familytest.Decode[Branch](t, remove(f, "allowed_to_unprotect", made.UnprotectAccessLevels)).UnprotectAccessLevels; len(left) != 0 {
		t.Errorf("got %+v", left)
	}
	if got := f.As("mary", "DELETE /projects/20/protected_branches/x", ""); got.Code != http.StatusNoContent {
		t.Errorf("got %s", got)
	}
}
