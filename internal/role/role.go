// Package role names what a member may do in a project or group, from least to most.
package role

import "fmt"

// Role is a level of access. A higher role includes the permissions of all lower ones, so roles are compared with < and >=. The numbers are
// the access levels of the REST API.
type Role int

// The roles. None is the role of a user who is not a member. Admin is not a role in a project: it occurs only as a level that a protection
// requires, and that the administrators of the instance have.
const (
	None       Role = 0
	Guest      Role = 10
	Reporter   Role = 20
	Developer  Role = 30
	Maintainer Role = 40
	Owner      Role = 50
	Admin      Role = 60
)

// String returns the name of the role, such as "Developer".
func (r Role) String() string {
	switch r {
	case None:
		return "None"
	case Guest:
		return "Guest"
	case Reporter:
		return "Reporter"
	case Developer:
		return "Developer"
	case Maintainer:
		return "Maintainer"
	case Owner:
		return "Owner"
	case Admin:
		return "Admin"
	default:
		return fmt.Sprintf("Role(%d)", int(r))
	}
}
