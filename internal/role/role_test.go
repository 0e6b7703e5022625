package role_test

import (
	"testing"

	"github.com/forgeplane/forgeplane/internal/role"
)

func TestRole_hasLevelAndName(t *testing.T) {
	all := []struct {
		role  role.Role
		level int
		name  string
	}{
		{role.None, 0, "None"},
		{role.Guest, 10, "Guest"},
		{role.Reporter, 20, "Reporter"},
		{role.Developer, 30, "Developer"},
		{role.Maintainer, 40, "Maintainer"},
		{role.Owner, 50, "Owner"},
		{role.Admin, 60, "Admin"},
		{role.Role(70), 70, "Role(70)"},
	}
	for i, r := range all {
		if int(r.role) != r.level || r.role.String() != r.name {
			t.Errorf("got %d %q, want %d %q", int(r.role), r.role, r.level, r.name)
		}
		if i > 0 && r.role <= all[i-1].role {
			t.Errorf("%s must be above %s", r.role, all[i-1].role)
		}
	}
}
