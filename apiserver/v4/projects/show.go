package projects

import (
	"context"
	"fmt"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/namespace"
	"github.com/forgeplane/forgeplane/apiserver/project"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/frame"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Project is a project in the REST API. In a simple list it has no details.
type Project struct {
	project.Summary
	ForksCount int `json:"forks_count"`
	*Details
}

// Details are the settings of a project, and how it stands.
type Details struct {
	Links                        Links        `json:"_links"`
	EmptyRepo                    bool         `json:"empty_repo"`
	Archived                     bool         `json:"archived"`
	Visibility                   string       `json:"visibility" doc:"private, internal or public."`
	RepositoryAccessLevel        string       `json:"repository_access_level" doc:"enabled, private or disabled."`
	ContainerRegistryAccessLevel string       `json:"container_registry_access_level" doc:"enabled, private or disabled."`
	ContainerRegistryEnabled     bool         `json:"container_registry_enabled"`
	RepositoryStorage            string       `json:"repository_storage,omitempty" doc:"Shown to administrators."`
	ImportURL                    *string      `json:"import_url" doc:"Shown to those who may change the project."`
	ImportStatus                 string       `json:"import_status" doc:"none, started, finished or failed."`
	ImportError                  *string      `json:"import_error" doc:"Shown to those who may change the project."`
	Permissions                  *Permissions `json:"permissions,omitempty"`
}

// Links are addresses in the REST API.
type Links struct {
	Self    string `json:"self"`
	Members string `json:"members"`
}

// Permissions are what the caller is in a project by memberships.
type Permissions struct {
	ProjectAccess *MemberAccess `json:"project_access" doc:"From a membership of the project, or of its owner's namespace."`
	GroupAccess   *MemberAccess `json:"group_access" doc:"The highest from the groups above."`
}

// MemberAccess is a role by its number.
type MemberAccess struct {
	AccessLevel       int `json:"access_level"`
	NotificationLevel int `json:"notification_level" doc:"Always 3, which leaves it to the user's own settings."`
}

// notificationLevel is shown for compatibility; nobody is notified.
const notificationLevel = 3

// permissions returns the permissions that roles in a project give. For clients, a user's namespace is not a group.
func permissions(r catalog.Roles, personal bool) *Permissions {
	if personal {
		r = catalog.Roles{Own: r.Highest()}
	}
	return &Permissions{ProjectAccess: memberAccess(r.Own), GroupAccess: memberAccess(r.Inherited)}
}

func memberAccess(r role.Role) *MemberAccess {
	if r == role.None {
		return nil
	}
	return &MemberAccess{AccessLevel: int(r), NotificationLevel: notificationLevel}
}

// viewer is whom a project is shown to.
type viewer struct {
	// roles are the caller's roles; nil if they are not requested.
	roles *catalog.Roles
	// settings says that the caller may see what is reserved for users who can change the settings; admin says that they administer the
	// instance.
	settings, admin bool
}

// simple shows a project without its details.
func (f *Family) simple(s catalog.Scope) Project { return Project{Summary: project.Of(s, f.webURL)} }

func (f *Family) show(ctx context.Context, s catalog.Scope, to viewer) (Project, error) {
	p := s.Project
	empty, err := f.refs.Empty(ctx, p)
	if err != nil {
		return Project{}, err
	}
	self := fmt.Sprintf("%s/api/v4/projects/%d", f.webURL, p.RESTID())
	shown := f.simple(s)
	shown.Details = &Details{
		Links: Links{Self: self, Members: self + "/members"}, EmptyRepo: empty, Archived: p.Spec.Archived,
		Visibility:                   namespace.Visibility(catalog.Visibility(p.Spec.Visibility, s.Groups)),
		RepositoryAccessLevel:        featureWord(p.Spec.Features.Repository),
		ContainerRegistryAccessLevel: featureWord(p.Spec.Features.ContainerRegistry),
		ContainerRegistryEnabled:     featureWord(p.Spec.Features.ContainerRegistry) != "disabled",
	}
	shown.showImport(p, to.settings)
	if to.admin {
		shown.RepositoryStorage = p.Status.Storage
	}
	if to.roles != nil {
		shown.Permissions = permissions(*to.roles, namespace.Personal(s.Groups[0]))
	}
	return shown, nil
}

// showImport sets the state of an import. If detailed is true, it adds the source and the reason of a failure.
func (d *Details) showImport(from *v1alpha1.Project, detailed bool) {
	d.ImportStatus = "none"
	if from.Spec.ImportURL == "" {
		return
	}
	d.ImportStatus = "started"
	if detailed {
		d.ImportURL = &from.Spec.ImportURL
	}
	if frame.Ready(from) {
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

// features are the words of the REST API for the declared ones.
var features = map[string]v1alpha1.FeatureAccess{
	"enabled": v1alpha1.FeatureEnabled, "private": v1alpha1.FeaturePrivate, "disabled": v1alpha1.FeatureDisabled,
}

func featureWord(a v1alpha1.FeatureAccess) string {
	for word, declared := range features {
		if declared == a {
			return word
		}
	}
	return "disabled"
}
