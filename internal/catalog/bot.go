package catalog

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/internal/role"
)

// Bot is a caller that has a role in one project, or in one group and everything below, and nowhere else. Memberships and shares do not count
// for it.
type Bot struct {
	// Target is the UID of the project or group.
	Target types.UID
	Role   role.Role
}

// RolesIn returns the roles of the bot in a scope.
func (b Bot) RolesIn(s Scope) (roles Roles) {
	for i, level := range s.Levels() {
		switch {
		case level.Target().GetUID() != b.Target:
		case i == 0:
			roles.Own = b.Role
		default:
			roles.Inherited = b.Role
		}
	}
	return roles
}

// ViewOf returns the groups and projects as a bot sees them.
func (c *Catalog) ViewOf(b Bot) *View {
	return &View{catalog: c, bot: &b, places: map[types.UID]*placed{}, homes: map[home]*placed{}}
}
