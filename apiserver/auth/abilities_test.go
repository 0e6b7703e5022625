package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/role"
)

// TestAccess has the whole table of who may see, read and push: s, r and p.
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
			t.Run(fmt.Sprintf("%s project, code %s, %s", tt.visibility, tt.code, c.name), func(t *testing.T) {
				a := Access{Role: c.role, signedIn: c.signedIn, visibility: tt.visibility, code: tt.code}
				got := ""
				for letter, ability := range map[string]endpoint.Ability{"s": ReadProject, "r": ReadCode, "p": PushCode} {
					if a.may(ability) != strings.Contains(tt.may[i], letter) {
						got += letter
					}
				}
				if got != "" {
					t.Errorf("want %q; wrong about %q", tt.may[i], got)
				}
			})
		}
	}
	if (Access{Role: role.Owner}).may("fly") {
		t.Error("an ability that nobody defined is granted")
	}
}
