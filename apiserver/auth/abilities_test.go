package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// TestAccess tests for all kinds of callers and projects whether the caller may see (s), read (r) and push (p).
func TestAccess(t *testing.T) {
	const (
		private, internal, public = v1alpha1.VisibilityPrivate, v1alpha1.VisibilityInternal, v1alpha1.VisibilityPublic
		enabled, members, off     = v1alpha1.FeatureEnabled, v1alpha1.FeaturePrivate, v1alpha1.FeatureDisabled
	)
	tests := []struct {
		visibility v1alpha1.Visibility
		code       v1alpha1.FeatureAccess
		// anonymous, signed in without a role, Guest, Reporter, Developer, Maintainer
		may [6]string
	}{
		{private, enabled, [6]string{"", "", "s", "sr", "srp", "srp"}},
		{private, members, [6]string{"", "", "s", "sr", "srp", "srp"}},
		{private, off, [6]string{"", "", "s", "s", "s", "s"}},
		{internal, enabled, [6]string{"", "sr", "sr", "sr", "srp", "srp"}},
		{internal, members, [6]string{"", "s", "s", "sr", "srp", "srp"}},
		{internal, off, [6]string{"", "s", "s", "s", "s", "s"}},
		{public, enabled, [6]string{"sr", "sr", "sr", "sr", "srp", "srp"}},
		{public, members, [6]string{"s", "s", "s", "sr", "srp", "srp"}},
		{public, off, [6]string{"s", "s", "s", "s", "s", "s"}},
		// A visibility that is not declared counts as the narrowest one.
		{public, "", [6]string{"s", "s", "s", "s", "s", "s"}},
		{"", enabled, [6]string{"", "", "s", "sr", "srp", "srp"}},
	}
	callers := []struct {
		name     string
		signedIn bool
		role     role.Role
	}{
		{"anonymous", false, role.None}, {"signed in", true, role.None}, {"Guest", true, role.Guest},
		{"Reporter", true, role.Reporter}, {"Developer", true, role.Developer}, {"Maintainer", true, role.Maintainer},
	}
	for _, tt := range tests {
		for i, c := range callers {
			t.Run(fmt.Sprintf("%s project, %s, %s", tt.visibility, tt.code, c.name), func(t *testing.T) {
				a := Access{Role: c.role, insider: c.signedIn, visibility: tt.visibility, code: tt.code, images: tt.code}
				got := ""
				for letter, ability := range map[string]endpoint.Ability{"s": ReadProject, "r": ReadCode, "p": PushCode} {
					if a.may(ability) != strings.Contains(tt.may[i], letter) {
						got += letter
					}
				}
				if got != "" {
					t.Errorf("want %q; wrong about %q", tt.may[i], got)
				}
				// Images differ from code in one case: Guests of a project can pull them unless they are private.
				images := tt.may[i]
				if tt.code == enabled && c.role == role.Guest {
					images = "sr"
				}
				for letter, ability := range map[string]endpoint.Ability{"r": ReadImages, "p": WriteImages} {
					if a.may(ability) != (strings.Contains(images, letter) && strings.Contains(images, "s")) {
						t.Errorf("images: want %q; wrong about %q", images, letter)
					}
				}
				if a.may(AdminImages) != (a.may(WriteImages) && c.role >= role.Maintainer) {
					t.Error("only Maintainers administer images")
				}
			})
		}
	}
	if (Access{Role: role.Owner}).may("fly") {
		t.Error("an ability that nobody defined is granted")
	}
}

func TestAccess_toPipelines(t *testing.T) {
	const private, public = v1alpha1.VisibilityPrivate, v1alpha1.VisibilityPublic
	for _, tt := range []struct {
		visibility  v1alpha1.Visibility
		code        v1alpha1.FeatureAccess
		privateJobs bool
		// least is the lowest role that sees pipelines; role.Admin if members do not.
		least role.Role
	}{
		{private, v1alpha1.FeatureEnabled, false, role.Guest},
		{private, v1alpha1.FeaturePrivate, false, role.Guest},
		{private, v1alpha1.FeatureEnabled, true, role.Reporter},
		{private, v1alpha1.FeatureDisabled, false, role.Admin},
		{public, v1alpha1.FeatureEnabled, false, role.None},
		{public, v1alpha1.FeaturePrivate, false, role.Guest},
		{public, v1alpha1.FeatureEnabled, true, role.Reporter},
		{public, v1alpha1.FeatureDisabled, false, role.Admin},
	} {
		for _, r := range []role.Role{role.None, role.Guest, role.Reporter, role.Owner} {
			a := Access{Role: r, insider: true, visibility: tt.visibility, code: tt.code, privateJobs: tt.privateJobs}
			if a.SeesPipelines() != (r >= tt.least) {
				t.Errorf("%s project, code %s, private pipelines %t: %s sees pipelines: %t", tt.visibility, tt.code, tt.privateJobs, r, a.SeesPipelines())
			}
		}
	}
}

// TestAccess_ofAuditors tests that an auditor without a role sees and reads everything but credentials, and changes nothing.
func TestAccess_ofAuditors(t *testing.T) {
	for _, v := range []v1alpha1.Visibility{v1alpha1.VisibilityPrivate, v1alpha1.VisibilityInternal} {
		for code, reads := range map[v1alpha1.FeatureAccess]bool{v1alpha1.FeatureEnabled: true, v1alpha1.FeaturePrivate: true, v1alpha1.FeatureDisabled: false, "": false} {
			a := Access{auditor: true, visibility: v, code: code, images: code}
			for what, r := range rules {
				want := !r.secret && r.about != aboutInstance && (!r.code && !r.jobs && !r.images || reads)
				if a.mayRead(what) != want || a.may(what) {
					t.Errorf("%s project, code %q, %s: reads %t, changes %t", v, code, what, a.mayRead(what), a.may(what))
				}
			}
			if !a.Sees() || a.Fetches() != reads {
				t.Errorf("%s project, code %q: sees %t, fetches %t", v, code, a.Sees(), a.Fetches())
			}
		}
	}
	member := Access{auditor: true, Role: role.Developer, visibility: v1alpha1.VisibilityPrivate, code: v1alpha1.FeatureEnabled}
	if !member.may(PushCode) || member.may(AdminProject) || !member.mayRead(AdminProject) {
		t.Error("an auditor has the roles of a member, too")
	}
}

func TestAccess_ofExternalUsers(t *testing.T) {
	for _, tt := range []struct {
		user v1alpha1.UserSpec
		v    v1alpha1.Visibility
		role role.Role
		sees bool
	}{
		{v1alpha1.UserSpec{}, v1alpha1.VisibilityInternal, role.None, true},
		{v1alpha1.UserSpec{External: true}, v1alpha1.VisibilityInternal, role.None, false},
		{v1alpha1.UserSpec{External: true}, v1alpha1.VisibilityInternal, role.Guest, true},
		{v1alpha1.UserSpec{External: true}, v1alpha1.VisibilityPublic, role.None, true},
		{v1alpha1.UserSpec{External: true, Auditor: true}, v1alpha1.VisibilityInternal, role.None, true},
		{v1alpha1.UserSpec{External: true, Admin: true}, v1alpha1.VisibilityInternal, role.None, true},
	} {
		group := &v1alpha1.Group{Spec: v1alpha1.GroupSpec{Visibility: tt.v}}
		seen := catalog.Seen{Scope: catalog.Scope{Groups: []*v1alpha1.Group{group}}, Roles: catalog.Roles{Own: tt.role}}
		if a := AccessOf(Caller{User: &v1alpha1.User{Spec: tt.user}, Admin: tt.user.Admin}, seen); a.Sees() != tt.sees {
			t.Errorf("%+v with the role %s sees a group that is %s: %t", tt.user, tt.role, tt.v, a.Sees())
		}
	}
}

func TestAccess_ofExternalUsersInPersonalGroups(t *testing.T) {
	for _, tt := range []struct {
		user     v1alpha1.UserSpec
		personal bool
		creates  bool
	}{
		{v1alpha1.UserSpec{}, true, true},
		{v1alpha1.UserSpec{External: true}, true, false},
		{v1alpha1.UserSpec{External: true}, false, true},
		{v1alpha1.UserSpec{External: true, Admin: true}, true, true},
	} {
		group := &v1alpha1.Group{}
		if tt.personal {
			group.Labels = map[string]string{v1alpha1.LabelPersonal: "1"}
		}
		seen := catalog.Seen{Scope: catalog.Scope{Groups: []*v1alpha1.Group{group}}, Roles: catalog.Roles{Own: role.Owner}}
		a := AccessOf(Caller{User: &v1alpha1.User{Spec: tt.user}, Admin: tt.user.Admin}, seen)
		if a.may(CreateProjects) != tt.creates || !a.may(OwnProject) {
			t.Errorf("%+v in a group that is personal: %t, creates projects: %t", tt.user, tt.personal, a.may(CreateProjects))
		}
	}
}
