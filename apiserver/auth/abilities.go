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
	// CommitCode is PushCode, also for callers whom merge requests let push to some branches.
	CommitCode endpoint.Ability = "commit_code"
	// LintConfiguration allows checking a CI configuration that a request sends, like creating a pipeline with it.
	LintConfiguration endpoint.Ability = "lint_configuration"
	// ReadPipelines allows seeing the pipelines of a project and their jobs. CreatePipelines allows creating pipelines, UpdatePipelines canceling,
	// retrying and playing their jobs, within the limits of the protections. AdminPipelines allows seeing the variables of the pipelines of others
	// and erasing their jobs, and DestroyPipelines deleting pipelines.
	ReadPipelines    endpoint.Ability = "read_pipelines"
	CreatePipelines  endpoint.Ability = "create_pipelines"
	UpdatePipelines  endpoint.Ability = "update_pipelines"
	AdminPipelines   endpoint.Ability = "admin_pipelines"
	DestroyPipelines endpoint.Ability = "destroy_pipelines"
	// ReadImages allows pulling and listing the images of a project, WriteImages pushing them and deleting a tag, and AdminImages deleting
	// repositories and many tags.
	ReadImages  endpoint.Ability = "read_container_images"
	WriteImages endpoint.Ability = "write_container_images"
	AdminImages endpoint.Ability = "admin_container_images"
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
	// ManageProjectTokens allows seeing, creating, rotating and revoking the access tokens of a project.
	ManageProjectTokens endpoint.Ability = "manage_project_tokens"
	// ReadBadges and WriteBadges apply to the badges of a project.
	ReadBadges  endpoint.Ability = "read_badges"
	WriteBadges endpoint.Ability = "write_badges"
	// AdminJobTokenScope allows seeing and changing the list of projects whose job tokens are accepted.
	AdminJobTokenScope endpoint.Ability = "admin_job_token_scope"
	// AdminRemoteMirrors allows seeing, creating, changing and removing the mirrors of a project.
	AdminRemoteMirrors endpoint.Ability = "admin_remote_mirrors"
	// AdminRunners allows seeing, creating, changing and removing the runners of a project, and AdminGroupRunners those of a group.
	AdminRunners      endpoint.Ability = "admin_runners"
	AdminGroupRunners endpoint.Ability = "admin_group_runners"
	// ManageVariables allows seeing, creating, changing and removing the CI variables of a project, with their values.
	ManageVariables endpoint.Ability = "manage_variables"
	// ReadLabels and WriteLabels apply to the labels of a project.
	ReadLabels  endpoint.Ability = "read_labels"
	WriteLabels endpoint.Ability = "write_labels"
	// ReadIssues allows seeing the issues of a project with their notes, and ReadConfidential also the confidential ones of others and internal
	// notes. CreateIssues allows creating issues and notes, AdminIssues changing those of others, and DestroyIssues deleting them.
	ReadIssues       endpoint.Ability = "read_issues"
	ReadConfidential endpoint.Ability = "read_confidential_issues"
	CreateIssues     endpoint.Ability = "create_issues"
	AdminIssues      endpoint.Ability = "admin_issues"
	DestroyIssues    endpoint.Ability = "destroy_issues"
	// ReadMergeRequests allows seeing the merge requests of a project with their notes. CreateMergeRequests allows creating them from its branches,
	// NoteMergeRequests writing notes on them, UpdateMergeRequests changing those of others, MergeMergeRequests merging them, and
	// DestroyMergeRequests deleting them.
	ReadMergeRequests    endpoint.Ability = "read_merge_requests"
	NoteMergeRequests    endpoint.Ability = "note_merge_requests"
	CreateMergeRequests  endpoint.Ability = "create_merge_requests"
	UpdateMergeRequests  endpoint.Ability = "update_merge_requests"
	MergeMergeRequests   endpoint.Ability = "merge_merge_requests"
	DestroyMergeRequests endpoint.Ability = "destroy_merge_requests"
	// ModerateNotes allows changing and removing the notes of others, and ResolveDiscussions resolving discussions of others.
	ModerateNotes      endpoint.Ability = "moderate_notes"
	ResolveDiscussions endpoint.Ability = "resolve_discussions"
	// ReadMilestones and WriteMilestones apply to the milestones of a project.
	ReadMilestones  endpoint.Ability = "read_milestones"
	WriteMilestones endpoint.Ability = "write_milestones"
	// ReadProjectMembers and WriteProjectMembers apply to the members of a project.
	ReadProjectMembers  endpoint.Ability = "read_project_members"
	WriteProjectMembers endpoint.Ability = "write_project_members"
	// ReadStatistics allows seeing the sizes of what belongs to a project.
	ReadStatistics endpoint.Ability = "read_statistics"
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
	// ReadGroupLabels and WriteGroupLabels apply to the labels of a group.
	ReadGroupLabels  endpoint.Ability = "read_group_labels"
	WriteGroupLabels endpoint.Ability = "write_group_labels"
	// ReadGroupBadges and WriteGroupBadges apply to the badges of a group.
	ReadGroupBadges  endpoint.Ability = "read_group_badges"
	WriteGroupBadges endpoint.Ability = "write_group_badges"
	// ReadEpics and WriteEpics apply to the epics of a group, ReadConfidentialEpics to the confidential ones of others, and DestroyEpics allows
	// deleting epics.
	ReadEpics             endpoint.Ability = "read_epics"
	ReadConfidentialEpics endpoint.Ability = "read_confidential_epics"
	WriteEpics            endpoint.Ability = "write_epics"
	DestroyEpics          endpoint.Ability = "destroy_epics"
	// CreateEpicNotes allows creating notes on epics, and ModerateEpicNotes changing, resolving and removing those of others.
	CreateEpicNotes   endpoint.Ability = "create_epic_notes"
	ModerateEpicNotes endpoint.Ability = "moderate_epic_notes"
	// ReadGroupMilestones and WriteGroupMilestones apply to the milestones of a group.
	ReadGroupMilestones  endpoint.Ability = "read_group_milestones"
	WriteGroupMilestones endpoint.Ability = "write_group_milestones"
	// ReadGroupImages allows listing the container repositories of the projects of a group.
	ReadGroupImages endpoint.Ability = "read_group_container_images"
	// ManageGroupTokens allows seeing, creating, rotating and revoking the access tokens of a group.
	ManageGroupTokens endpoint.Ability = "manage_group_tokens"
	// ManageGroupVariables allows seeing, creating, changing and removing the CI variables of a group, with their values.
	ManageGroupVariables endpoint.Ability = "manage_group_variables"
	// AdminGroupProtectedBranches allows seeing, creating, changing and removing the protections of a group.
	AdminGroupProtectedBranches endpoint.Ability = "admin_group_protected_branches"
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
	case aboutProject, aboutGroup:
		return ability == s || ability == aboutInstance
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
	// jobs requires that the caller can see pipelines.
	jobs bool
	// images requires that the caller can also pull images.
	images bool
	// collaboration also gives the ability to callers whom merge requests let push to some branches of the project.
	collaboration bool
	// insider withholds the ability from external users in groups of personal projects.
	insider bool
	// secret withholds the ability from auditors, who need no role to read, because it shows credentials.
	secret bool
	// repository says that the ability needs something that the controller of a project creates: the repository, the protection of its
	// default branch, or the issues that it adopts.
	repository bool
}

// rules maps every ability to its requirements (API behaviour, section 2). Abilities about the instance belong to its administrators.
var rules = map[endpoint.Ability]rule{
	ReadProject:                 {about: aboutProject},
	ReadCode:                    {about: aboutProject, code: true, repository: true},
	PushCode:                    {about: aboutProject, role: role.Developer, code: true, repository: true},
	CommitCode:                  {about: aboutProject, role: role.Developer, code: true, repository: true, collaboration: true},
	LintConfiguration:           {about: aboutProject, role: role.Developer, code: true, repository: true},
	ReadPipelines:               {about: aboutProject, jobs: true},
	CreatePipelines:             {about: aboutProject, role: role.Developer, code: true, repository: true},
	UpdatePipelines:             {about: aboutProject, role: role.Developer, code: true},
	AdminPipelines:              {about: aboutProject, role: role.Maintainer, code: true, secret: true},
	DestroyPipelines:            {about: aboutProject, role: role.Owner},
	ReadImages:                  {about: aboutProject, images: true},
	WriteImages:                 {about: aboutProject, role: role.Developer, images: true},
	AdminImages:                 {about: aboutProject, role: role.Maintainer, images: true},
	AdminProject:                {about: aboutProject, role: role.Maintainer},
	ReadStatistics:              {about: aboutProject, role: role.Reporter},
	OwnProject:                  {about: aboutProject, role: role.Owner},
	ReadProtectedBranches:       {about: aboutProject, code: true, repository: true},
	WriteProtectedBranches:      {about: aboutProject, role: role.Maintainer, repository: true},
	ReadDeployKeys:              {about: aboutProject, role: role.Maintainer},
	WriteDeployKeys:             {about: aboutProject, role: role.Maintainer},
	ManageTriggers:              {about: aboutProject, role: role.Maintainer},
	ManageProjectTokens:         {about: aboutProject, role: role.Maintainer},
	ReadBadges:                  {about: aboutProject},
	WriteBadges:                 {about: aboutProject, role: role.Maintainer},
	AdminJobTokenScope:          {about: aboutProject, role: role.Maintainer},
	AdminRemoteMirrors:          {about: aboutProject, role: role.Maintainer},
	AdminRunners:                {about: aboutProject, role: role.Maintainer},
	ManageVariables:             {about: aboutProject, role: role.Maintainer, secret: true},
	ReadLabels:                  {about: aboutProject},
	WriteLabels:                 {about: aboutProject, role: role.Reporter},
	ReadIssues:                  {about: aboutProject},
	ReadConfidential:            {about: aboutProject, role: role.Reporter},
	CreateIssues:                {about: aboutProject, repository: true},
	AdminIssues:                 {about: aboutProject, role: role.Reporter},
	DestroyIssues:               {about: aboutProject, role: role.Owner},
	ReadMergeRequests:           {about: aboutProject, code: true},
	NoteMergeRequests:           {about: aboutProject, code: true, repository: true},
	CreateMergeRequests:         {about: aboutProject, role: role.Developer, code: true, repository: true},
	UpdateMergeRequests:         {about: aboutProject, role: role.Developer, code: true},
	MergeMergeRequests:          {about: aboutProject, role: role.Developer, code: true, repository: true},
	DestroyMergeRequests:        {about: aboutProject, role: role.Owner},
	ModerateNotes:               {about: aboutProject, role: role.Maintainer},
	ResolveDiscussions:          {about: aboutProject, role: role.Developer},
	ReadMilestones:              {about: aboutProject},
	WriteMilestones:             {about: aboutProject, role: role.Reporter, repository: true},
	ReadProjectMembers:          {about: aboutProject},
	WriteProjectMembers:         {about: aboutProject, role: role.Maintainer},
	ReadGroup:                   {about: aboutGroup},
	AdminGroup:                  {about: aboutGroup, role: role.Owner},
	CreateProjects:              {about: aboutNamespace, role: role.Maintainer, insider: true},
	CreateSubgroups:             {about: aboutGroup, role: role.Maintainer},
	ReadGroupMembers:            {about: aboutGroup},
	WriteGroupMembers:           {about: aboutGroup, role: role.Owner},
	ReadGroupLabels:             {about: aboutGroup},
	WriteGroupLabels:            {about: aboutGroup, role: role.Reporter},
	ReadGroupBadges:             {about: aboutGroup},
	WriteGroupBadges:            {about: aboutGroup, role: role.Owner},
	ReadEpics:                   {about: aboutGroup},
	ReadConfidentialEpics:       {about: aboutGroup, role: role.Reporter},
	WriteEpics:                  {about: aboutGroup, role: role.Reporter},
	DestroyEpics:                {about: aboutGroup, role: role.Owner},
	CreateEpicNotes:             {about: aboutGroup},
	ModerateEpicNotes:           {about: aboutGroup, role: role.Maintainer},
	ReadGroupMilestones:         {about: aboutGroup},
	WriteGroupMilestones:        {about: aboutGroup, role: role.Reporter},
	ReadGroupImages:             {about: aboutGroup, role: role.Reporter},
	ManageGroupTokens:           {about: aboutGroup, role: role.Owner},
	AdminGroupRunners:           {about: aboutGroup, role: role.Owner},
	ManageGroupVariables:        {about: aboutGroup, role: role.Owner, secret: true},
	AdminGroupProtectedBranches: {about: aboutGroup, role: role.Owner},
	AdminInstance:               {about: aboutInstance, role: role.Admin},
}

// Access has the permissions of one caller on one project or group.
type Access struct {
	// Role is the caller's effective role; Owner for an administrator.
	Role role.Role
	// Roles has the caller's roles from memberships.
	Roles catalog.Roles
	// Admin is true for an administrator of the instance.
	Admin bool

	insider, auditor bool
	// personal is true for a group of personal projects, and for a project in one.
	personal bool

	visibility v1alpha1.Visibility
	// code and images are the access to the repository and to the container registry; empty for a group.
	code, images v1alpha1.FeatureAccess
	// privateJobs says that only Reporters can see the pipelines of the project.
	privateJobs bool
}

// may reports whether the caller has an ability. An ability that is not in rules is never granted.
func (a Access) may(what endpoint.Ability) bool {
	r, ok := rules[what]
	if !ok || r.about == aboutInstance {
		return ok && a.Admin
	}
	return a.admitted() && a.Role >= r.role && (!r.code || a.readsCode()) && (!r.jobs || a.readsJobs()) && (!r.images || a.readsImages()) && (!r.insider || !a.personal || a.insider)
}

// mayRead is may for a request that changes nothing, which an auditor needs no role for unless it shows credentials. Code, pipelines and images that
// are disabled cannot be read.
func (a Access) mayRead(what endpoint.Ability) bool {
	if a.may(what) {
		return true
	}
	r, ok := rules[what]
	return ok && a.auditor && !r.secret && r.about != aboutInstance && (!r.code && !r.jobs || on(a.code)) && (!r.images || on(a.images))
}

// on reports whether a feature is enabled, at least for members.
func on(f v1alpha1.FeatureAccess) bool {
	return f == v1alpha1.FeatureEnabled || f == v1alpha1.FeaturePrivate
}

// Sees reports whether the caller may know that the project or group exists.
func (a Access) Sees() bool { return a.auditor || a.admitted() }

// admitted is Sees without what auditors see.
func (a Access) admitted() bool { return a.Role >= role.Guest || a.open() }

// Fetches reports whether the caller may read the repository of the project.
func (a Access) Fetches() bool { return a.mayRead(ReadCode) }

// SeesPipelines reports whether the caller may see pipelines.
func (a Access) SeesPipelines() bool { return a.mayRead(ReadPipelines) }

// RunsPipelines reports whether the caller may create pipelines, within the limits of the protections.
func (a Access) RunsPipelines() bool { return a.may(CreatePipelines) }

// Images reports whether the caller may pull, push and delete images of the project.
func (a Access) Images() (pull, push, remove bool) {
	return a.mayRead(ReadImages), a.may(WriteImages), a.may(AdminImages)
}

// open reports whether the caller can see the project or group without being a member.
func (a Access) open() bool {
	switch a.visibility {
	case v1alpha1.VisibilityPublic:
		return true
	case v1alpha1.VisibilityInternal:
		return a.insider
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

// readsJobs reports whether the caller can see pipelines: a Reporter, and if they are public every member and everybody who can read the repository.
func (a Access) readsJobs() bool {
	switch {
	case a.Role >= role.Reporter, a.Role >= role.Guest && !a.privateJobs:
		return on(a.code)
	default:
		return !a.privateJobs && a.readsCode()
	}
}

// readsImages reports whether the caller can pull images: everybody who can see the project, or only its Reporters ("Container registry" of the
// core interface document).
func (a Access) readsImages() bool {
	switch a.images {
	case v1alpha1.FeatureEnabled:
		return true
	case v1alpha1.FeaturePrivate:
		return a.Role >= role.Reporter
	default:
		return false
	}
}
