package projects

import (
	"cmp"
	"context"
	"strconv"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/sharing"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Project is a project in the REST API. In a simple list it has no details.
type Project struct {
	entity.ProjectSummary
	ForksCount        int                    `json:"forks_count"`
	ForkedFromProject *entity.ProjectSummary `json:"forked_from_project,omitempty" doc:"The project that it is a fork of, if the caller can see that project."`
	*Details
}

// Details are the settings and the state of a project.
type Details struct {
	Links                        Links        `json:"_links"`
	EmptyRepo                    bool         `json:"empty_repo"`
	Archived                     bool         `json:"archived"`
	Visibility                   string       `json:"visibility" doc:"private, internal or public."`
	RepositoryAccessLevel        string       `json:"repository_access_level" doc:"enabled, private or disabled."`
	ContainerRegistryAccessLevel string       `json:"container_registry_access_level" doc:"enabled, private or disabled."`
	ContainerRegistryEnabled     bool         `json:"container_registry_enabled"`
	SquashOption                 string       `json:"squash_option" doc:"never, always, default_on or default_off."`
	RequirePipeline              bool         `json:"only_allow_merge_if_pipeline_succeeds" doc:"Whether merge requests can be merged only if their last pipelines have succeeded."`
	AllowSkipped                 bool         `json:"allow_merge_on_skipped_pipeline" doc:"Whether a skipped pipeline counts as successful for merges."`
	PublicJobs                   bool         `json:"public_jobs" doc:"Whether everybody who can see the code can see pipelines."`
	KeepLatestArtifact           bool         `json:"keep_latest_artifact" doc:"Whether the artifacts of the latest successful pipelines stay after they have expired."`
	RepositoryStorage            string       `json:"repository_storage,omitempty" doc:"Shown to administrators."`
	ImportURL                    *string      `json:"import_url" doc:"Shown to callers who can change the project."`
	ImportStatus                 string       `json:"import_status" doc:"none, started, finished or failed."`
	ImportError                  *string      `json:"import_error" doc:"Shown to callers who can change the project."`
	Permissions                  *Permissions `json:"permissions,omitempty"`
	Statistics                   *Statistics  `json:"statistics,omitempty" doc:"Shown with statistics=true to callers who are at least Reporters."`

	SharedWithGroups []sharing.Group `json:"shared_with_groups" doc:"Groups that the project itself is shared with and that the caller can see."`
}

// Links are addresses in the REST API.
type Links struct {
	Self    string `json:"self"`
	Members string `json:"members"`
}

// Permissions are the roles of the caller from memberships.
type Permissions struct {
	ProjectAccess *MemberAccess `json:"project_access" doc:"From a membership of the project, or of its owner's namespace."`
	GroupAccess   *MemberAccess `json:"group_access" doc:"The highest role from the groups above and from groups that the project is shared with."`
}

// MemberAccess is a role by its number.
type MemberAccess struct {
	AccessLevel       int `json:"access_level"`
	NotificationLevel int `json:"notification_level" doc:"Always 3, for the user's own settings."`
}

// notificationLevel is shown for compatibility. There are no notifications.
const notificationLevel = 3

// permissions converts roles in a project to permissions. For clients, a user's namespace is not a group.
func permissions(r catalog.Roles, personal bool) *Permissions {
	if personal {
		r = catalog.Roles{Own: r.Member(), Shared: r.Shared}
	}
	return &Permissions{ProjectAccess: memberAccess(r.Own), GroupAccess: memberAccess(max(r.Inherited, r.Shared))}
}

func memberAccess(r role.Role) *MemberAccess {
	if r == role.None {
		return nil
	}
	return &MemberAccess{AccessLevel: int(r), NotificationLevel: notificationLevel}
}

// viewer is a caller who requests a project.
type viewer struct {
	caller auth.Caller
	// roles are the caller's roles; nil if they are not requested.
	roles *catalog.Roles
	// settings says that the caller can change the settings, and so sees all of them. admin says that the caller is an administrator.
	settings, admin bool
	// counts says that the caller can see statistics, and statistics that the request asks for them.
	counts, statistics bool
}

// simple shows a project without its details.
func (f *Family) simple(s catalog.Scope) Project {
	return Project{ProjectSummary: entity.SummarizeProject(s, f.WebURL)}
}

func (f *Family) show(ctx context.Context, s catalog.Scope, to viewer) (Project, error) {
	p := s.Project
	empty, err := f.Refs.Empty(ctx, p)
	if err != nil {
		return Project{}, err
	}
	shared, err := f.sharing.Show(ctx, to.caller, p)
	if err != nil {
		return Project{}, err
	}
	self := f.WebURL + "/api/v4/projects/" + strconv.FormatInt(p.RESTID(), 10)
	shown := f.simple(s)
	shown.Details = &Details{
		Links: Links{Self: self, Members: self + "/members"}, EmptyRepo: empty, Archived: p.Spec.Archived,
		Visibility:                   entity.Visibility(catalog.Visibility(p.Spec.Visibility, s.Groups)),
		RepositoryAccessLevel:        featureWord(p.Spec.Features.Repository),
		ContainerRegistryAccessLevel: featureWord(p.Spec.Features.ContainerRegistry),
		ContainerRegistryEnabled:     featureWord(p.Spec.Features.ContainerRegistry) != "disabled",
		SquashOption:                 squashWord(p.Spec.MergeRequests.Squash),
		RequirePipeline:              p.Spec.MergeRequests.RequirePipeline,
		AllowSkipped:                 p.Spec.MergeRequests.AllowSkippedPipeline,
		PublicJobs:                   p.Spec.Pipelines.ArePublic(),
		KeepLatestArtifact:           p.Spec.Pipelines.KeepsLatestArtifacts(),
		SharedWithGroups:             shared,
	}
	if err := f.showForks(ctx, &shown, p, to); err != nil {
		return Project{}, err
	}
	shown.showImport(p, to.settings)
	if to.admin {
		shown.RepositoryStorage = p.Status.Storage
	}
	if to.statistics {
		if shown.Statistics, err = f.statistics(ctx, p); err != nil {
			return Project{}, err
		}
	}
	if to.roles != nil {
		shown.Permissions = permissions(*to.roles, namespace.Personal(s.Groups[0]))
	}
	return shown, nil
}

// showImport sets the state of an import or a fork. If detailed is true, it adds the source and the reason of a failure.
func (d *Details) showImport(from *v1alpha1.Project, detailed bool) {
	d.ImportStatus = "none"
	if from.Spec.ImportURL == "" && from.Spec.ForkOf == nil {
		return
	}
	d.ImportStatus = "started"
	if detailed && from.Spec.ImportURL != "" {
		d.ImportURL = &from.Spec.ImportURL
	}
	// A share with a missing group makes the project, but not its import, unready.
	if frame.InForce(from) || from.Status.RefsChecksum != "" {
		d.ImportStatus = "finished"
		return
	}
	for _, c := range from.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.Reason == v1alpha1.ReasonImportFailed {
			d.ImportStatus = "failed"
			if detailed {
				d.ImportError = &c.Message
			}
		}
	}
}

// features has the values of the REST API for the declared ones, and featureWords the reverse.
var (
	features = map[string]v1alpha1.FeatureAccess{
		"enabled": v1alpha1.FeatureEnabled, "private": v1alpha1.FeaturePrivate, "disabled": v1alpha1.FeatureDisabled,
	}
	featureWords = inverse(features)
)

func featureWord(a v1alpha1.FeatureAccess) string { return cmp.Or(featureWords[a], "disabled") }

// squashOptions has the values of the REST API for the declared ones, and squashWords the reverse.
var (
	squashOptions = map[string]v1alpha1.SquashOption{
		"never": v1alpha1.SquashNever, "always": v1alpha1.SquashAlways, "default_on": v1alpha1.SquashDefaultOn, "default_off": v1alpha1.SquashDefaultOff,
	}
	squashWords = inverse(squashOptions)
)

func squashWord(o v1alpha1.SquashOption) string { return cmp.Or(squashWords[o], "default_off") }

// inverse returns a map from the values of a map to their keys.
func inverse[K, V comparable](m map[K]V) map[V]K {
	inverted := make(map[V]K, len(m))
	for k, v := range m {
		inverted[v] = k
	}
	return inverted
}
