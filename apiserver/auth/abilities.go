package auth

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// The abilities that endpoints and the Git server ask for.
const (
	// ReadProject is to know that a project exists, and to see what is public of it.
	ReadProject endpoint.Ability = "read_project"
	// ReadCode is to clone, fetch and read the repository.
	ReadCode endpoint.Ability = "read_code"
	// PushCode is to push, as far as protections allow.
	PushCode endpoint.Ability = "push_code"
	// AdminProject is to change the settings of a project.
	AdminProject endpoint.Ability = "admin_project"
	// OwnProject is to delete or archive a project, and to say who may see it.
	OwnProject endpoint.Ability = "own_project"
	// ReadProtectedBranches is to see the protections of a project.
	ReadProtectedBranches endpoint.Ability = "read_protected_branches"
	// WriteProtectedBranches is to make, change and remove them.
	WriteProtectedBranches endpoint.Ability = "write_protected_branches"
	// ReadDeployKeys and WriteDeployKeys are about the deploy keys of a project.
	ReadDeployKeys  endpoint.Ability = "read_deploy_keys"
	WriteDeployKeys endpoint.Ability = "write_deploy_keys"
	// ManageTriggers is to see, make, change and remove the trigger tokens of a project.
	ManageTriggers endpoint.Ability = "manage_triggers"
	// ReadBadges and WriteBadges are about the badges of a project.
	ReadBadges  endpoint.Ability = "read_badges"
	WriteBadges endpoint.Ability = "write_badges"
	// AdminJobTokenScope is to see and to change which projects' job tokens are let in.
	AdminJobTokenScope endpoint.Ability = "admin_job_token_scope"
	// AdminRemoteMirrors is to see, make, change and remove the mirrors of a project.
	AdminRemoteMirrors endpoint.Ability = "admin_remote_mirrors"
	// ReadLabels and WriteLabels are about the labels of a project.
	ReadLabels  endpoint.Ability = "read_labels"
	WriteLabels endpoint.Ability = "write_labels"
	// ReadProjectMembers and WriteProjectMembers are about the members of a project.
	ReadProjectMembers  endpoint.Ability = "read_project_members"
	WriteProjectMembers endpoint.Ability = "write_project_members"
	// ReadGroup is to know that a group exists.
	ReadGroup endpoint.Ability = "read_group"
	// AdminGroup is to change the settings of a group, and to delete it.
	AdminGroup endpoint.Ability = "admin_group"
	// CreateProjects is to make projects in a group, or in a user's own namespace.
	CreateProjects endpoint.Ability = "create_projects"
	// CreateSubgroups is to make groups in a group.
	CreateSubgroups endpoint.Ability = "create_subgroups"
	// ReadGroupMembers and WriteGroupMembers are about the members of a group.
	ReadGroupMembers  endpoint.Ability = "read_group_members"
	WriteGroupMembers endpoint.Ability = "write_group_members"
	// WriteGroupLabels is to make, change and remove the labels of a group.
	WriteGroupLabels endpoint.Ability = "write_group_labels"
	// AdminInstance is what administrators can.
	AdminInstance endpoint.Ability = "admin_instance"
)

// subject is what an ability is about.
type subject int

const (
	aboutInstance subject = iota
	aboutProject
	aboutGroup
	// aboutNamespace is about a group or a user's own namespace: what holds projects.
	aboutNamespace
	// aboutUser and aboutRecord are about what no ability is about by itself.
	aboutUser
	aboutRecord
)

// admits reports whether an ability about another subject is one about this.
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

// rule is what an ability takes.
type rule struct {
	about subject
	// role is the least that suffices. With role.None it suffices to see the subject, member or not.
	role role.Role
	// code says that the repository is to be readable, too.
	code bool
	// repository says that the ability is about what the controller of a project makes: the repository, and the protection
	// of its default branch.
	repository bool
}

// rules maps every ability to what it takes (API behaviour, section 2). An ability about the instance is for its
// administrators.
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

// Access is what one caller may do with one project or group.
type Access struct {
	// Role is the caller's effective role; Owner for an administrator.
	Role role.Role
	// Roles are what the caller has from memberships.
	Roles catalog.Roles
	// Admin is true for an administrator of the instance.
	Admin bool

	signedIn   bool
	visibility v1alpha1.Visibility
	// code is empty for a group.
	code v1alpha1.FeatureAccess
}

// may reports whether the caller has an ability. One that is not in the table nobody has.
func (a Access) may(what endpoint.Ability) bool {
	r, ok := rules[what]
	if !ok || r.about == aboutInstance {
		return ok && a.Admin
	}
	return a.Sees() && a.Role >= r.role && (!r.code || a.readsCode())
}

// Sees reports whether the caller may know of the project or group.
func (a Access) Sees() bool { return a.Role >= role.Guest || a.open() }

// Fetches reports whether the caller may read the repository of the project.
func (a Access) Fetches() bool { return a.may(ReadCode) }

// open reports whether the caller sees it without being a member.
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

// readsCode lets a guest read what everybody may who sees the project, and no more.
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
