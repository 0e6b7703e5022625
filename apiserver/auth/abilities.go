package auth

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// The abilities that the REST endpoints and the Git server require.
const (
	// ReadProject allows knowing that a project exists, and seeing its public parts.
	ReadProject endpoint.Ability = "read_project"
	// ReadCode allows cloning, fetching and reading the repository.
	ReadCode endpoint.Ability = "read_code"
	// PushCode allows pushing, within the limits of the protections.
	PushCode endpoint.Ability = "push_code"
	// AdminProject allows changing the settings of a project.
	AdminProject endpoint.Ability = "admin_project"
	// OwnProject allows deleting or archiving a project, and changing its visibility.
	OwnProject endpoint.Ability = "own_project"
	// ReadProtectedBranches allows seeing the protections of a project.
	ReadProtectedBranches endpoint.Ability = "read_protected_branches"
	// WriteProtectedBranches allows creating, changing and removing the protections of a project.
	WriteProtectedBranches endpoint.Ability = "write_protected_branches"
	// ReadDeployKeys and WriteDeployKeys apply to the deploy keys of a project.
	ReadDeployKeys  endpoint.Ability = "read_deploy_keys"
	WriteDeployKeys endpoint.Ability = "write_deploy_keys"
	// ManageTriggers allows seeing, creating, changing and removing the trigger tokens of a project.
	ManageTriggers endpoint.Ability = "manage_triggers"
	// ReadBadges and WriteBadges apply to the badges of a project.
	ReadBadges  endpoint.Ability = "read_badges"
	WriteBadges endpoint.Ability = "write_badges"
	// AdminJobTokenScope allows seeing and changing the list of projects whose job tokens are accepted.
	AdminJobTokenScope endpoint.Ability = "admin_job_token_scope"
	// AdminRemoteMirrors allows seeing, creating, changing and removing the mirrors of a project.
	AdminRemoteMirrors endpoint.Ability = "admin_remote_mirrors"
	// ReadLabels and WriteLabels apply to the labels of a project.
	ReadLabels  endpoint.Ability = "read_labels"
	WriteLabels endpoint.Ability = "write_labels"
	// ReadProjectMembers and WriteProjectMembers apply to the members of a project.
	ReadProjectMembers  endpoint.Ability = "read_project_members"
	WriteProjectMembers endpoint.Ability = "write_project_members"
	// ReadGroup allows knowing that a group exists.
	ReadGroup endpoint.Ability = "read_group"
	// AdminGroup allows changing the settings of a group, and deleting it.
	AdminGroup endpoint.Ability = "admin_group"
	// CreateProjects allows creating projects in a group, or in a user's own namespace.
	CreateProjects endpoint.Ability = "create_projects"
	// CreateSubgroups allows creating groups in a group.
	CreateSubgroups endpoint.Ability = "create_subgroups"
	// ReadGroupMembers and WriteGroupMembers apply to the members of a group.
	ReadGroupMembers  endpoint.Ability = "read_group_members"
	WriteGroupMembers endpoint.Ability = "write_group_members"
	// WriteGroupLabels allows creating, changing and removing the labels of a group.
	WriteGroupLabels endpoint.Ability = "write_group_labels"
	// AdminInstance allows everything that is reserved for administrators of the instance.
	AdminInstance endpoint.Ability = "admin_instance"
)

// subject is the kind of thing that an ability applies to.
type subject int

const (
	aboutInstance subject = iota
	aboutProject
	aboutGroup
	// aboutNamespace is a container of projects: a group or a user's own namespace.
	aboutNamespace
	// aboutUser and aboutRecord are subjects that have no abilities of their own.
	aboutUser
	aboutRecord
)

// admits reports whether an endpoint about this subject can require an ability about the other subject.
func (s subject) admits(ability subject) bool {
	switch s {
	case aboutUser:
		return ability == aboutInstance
	case aboutRecord:
		return ability == aboutInstance || ability == aboutProject
	default:
		return ability == s
	}
}

// rule has the requirements of an ability.
type rule struct {
	about subject
	// role is the minimum role. With role.None, everybody who can see the subject has the ability, member or not.
	role role.Role
	// code requires that the caller can also read the repository.
	code bool
	// repository says that the ability needs something that the controller of a project creates: the repository, or the protection of its
	// default branch.
	repository bool
}

// rules maps every ability to its requirements (API behaviour, section 2). Abilities about the instance belong to its administrators.
var rules = map[endpoint.Ability]rule{
	ReadProject:            {about: aboutProject},
	ReadCode:               {about: aboutProject, code: true, repository: true},
	PushCode:               {about: aboutProject, role: role.Developer, code: true, repository: true},
	AdminProject:           {about: aboutProject, role: role.Maintainer},
	OwnProject:             {about: aboutProject, role: role.Owner},
	ReadProtectedBranches:  {about: aboutProject, code: true, repository: true},
	WriteProtectedBranches: {about: aboutProject, role: role.Maintainer, repository: true},
	ReadDeployKeys:         {about: aboutProject, role: role.Maintainer},
	WriteDeployKeys:        {about: aboutProject, role: role.Maintainer},
	ManageTriggers:         {about: aboutProject, role: role.Maintainer},
	ReadBadges:             {about: aboutProject},
	WriteBadges:            {about: aboutProject, role: role.Maintainer},
	AdminJobTokenScope:     {about: aboutProject, role: role.Maintainer},
	AdminRemoteMirrors:     {about: aboutProject, role: role.Maintainer},
	ReadLabels:             {about: aboutProject},
	WriteLabels:            {about: aboutProject, role: role.Reporter},
	ReadProjectMembers:     {about: aboutProject},
	WriteProjectMembers:    {about: aboutProject, role: role.Maintainer},
	ReadGroup:              {about: aboutGroup},
	AdminGroup:             {about: aboutGroup, role: role.Owner},
	CreateProjects:         {about: aboutNamespace, role: role.Maintainer},
	CreateSubgroups:        {about: aboutGroup, role: role.Maintainer},
	ReadGroupMembers:       {about: aboutGroup},
	WriteGroupMembers:      {about: aboutGroup, role: role.Owner},
	WriteGroupLabels:       {about: aboutGroup, role: role.Reporter},
	AdminInstance:          {about: aboutInstance, role: role.Admin},
}

// Access has the permissions of one caller on one project or group.
type Access struct {
	// Role is the caller's effective role; Owner for an administrator.
	Role role.Role
	// Roles has the caller's roles from memberships.
	Roles catalog.Roles
	// Admin is true for an administrator of the instance.
	Admin bool

	signedIn   bool
	visibility v1alpha1.Visibility
	// code is the access to the repository; empty for a group.
	code v1alpha1.FeatureAccess
}

// may reports whether the caller has an ability. Nobody has an ability that is not in rules.
func (a Access) may(what endpoint.Ability) bool {
	r, ok := rules[what]
	if !ok || r.about == aboutInstance {
		return ok && a.Admin
	}
	return a.Sees() && a.Role >= r.role && (!r.code || a.readsCode())
}

// Sees reports whether the caller may know that the project or group exists.
func (a Access) Sees() bool { return a.Role >= role.Guest || a.open() }

// Fetches reports whether the caller may read the repository of the project.
func (a Access) Fetches() bool { return a.may(ReadCode) }

// open reports whether the caller can see the project or group without being a member.
func (a Access) open() bool {
	switch a.visibility {
	case v1alpha1.VisibilityPublic:
		return true
	case v1alpha1.VisibilityInternal:
		return a.signedIn
	default:
		return false
	}
}

// readsCode reports whether the caller can read the repository. Guests can read it only if everybody who can see the project can.
func (a Access) readsCode() bool {
	switch a.code {
	case v1alpha1.FeatureEnabled:
		return a.Role >= role.Reporter || a.open()
	case v1alpha1.FeaturePrivate:
		return a.Role >= role.Reporter
	default:
		return false
	}
}
