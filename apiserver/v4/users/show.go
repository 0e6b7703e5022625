package users

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
)

// User is a user in the REST API. Lists have only the summary. A single user also has the profile, and for the user and administrators the
// account.
type User struct {
	entity.UserSummary
	*Profile
	*Account
}

// Profile has the fields that all signed-in callers can see.
type Profile struct {
	CreatedAt    endpoint.Time `json:"created_at"`
	Bio          string        `json:"bio"`
	Location     string        `json:"location"`
	PublicEmail  string        `json:"public_email"`
	WebsiteURL   string        `json:"website_url"`
	Organization string        `json:"organization"`
	Bot          bool          `json:"bot"`
}

// Account has the fields that only the user and administrators can see.
type Account struct {
	Email            string        `json:"email"`
	ConfirmedAt      endpoint.Time `json:"confirmed_at"`
	LastSignInAt     endpoint.Time `json:"last_sign_in_at"`
	CurrentSignInAt  endpoint.Time `json:"current_sign_in_at"`
	LastActivityOn   endpoint.Date `json:"last_activity_on"`
	ThemeID          int           `json:"theme_id"`
	ColorSchemeID    int           `json:"color_scheme_id"`
	ProjectsLimit    int           `json:"projects_limit"`
	Identities       []string      `json:"identities"`
	CanCreateGroup   bool          `json:"can_create_group"`
	CanCreateProject bool          `json:"can_create_project"`
	TwoFactorEnabled bool          `json:"two_factor_enabled"`
	External         bool          `json:"external"`
	PrivateProfile   bool          `json:"private_profile"`
	SharedMinutes    *int          `json:"shared_runners_minutes_limit" doc:"Always null."`
	ExtraMinutes     *int          `json:"extra_shared_runners_minutes_limit" doc:"Always null."`
	IsAdmin          *bool         `json:"is_admin,omitempty" doc:"Shown to administrators only."`
	IsAuditor        *bool         `json:"is_auditor,omitempty" doc:"Shown to administrators only."`
}

// unlimited is the number of projects that stands for no limit.
const unlimited = 100_000

// summary returns a user as others see them in lists.
func summary(u *v1alpha1.User, webURL string) User {
	return User{UserSummary: entity.SummarizeUser(u, webURL)}
}

// seen returns a user as others see them.
func seen(u *v1alpha1.User, webURL string) User {
	shown := summary(u, webURL)
	shown.Profile = &Profile{CreatedAt: endpoint.Time(u.CreationTimestamp.Time), Bot: u.Spec.Type == v1alpha1.UserBot}
	return shown
}

// own returns a user as they see themselves. admin says that they administer the instance, by their User or by the cluster.
func (f *Family) own(u *v1alpha1.User, admin bool) User {
	shown := f.full(u, admin)
	if admin {
		shown.IsAdmin = &admin
	}
	return shown
}

// full returns a user as administrators see them or, if toAdmin is false, as they see themselves.
func (f *Family) full(u *v1alpha1.User, toAdmin bool) User {
	shown := seen(u, f.WebURL)
	projects, bounded := f.Quotas.ProjectsOf(u)
	if !bounded {
		projects = unlimited
	}
	if u.Spec.External && !u.Spec.Admin {
		projects = 0
	}
	shown.Account = &Account{
		Email: u.Spec.Email, ConfirmedAt: endpoint.Time(u.CreationTimestamp.Time),
		ThemeID: 1, ColorSchemeID: 1, ProjectsLimit: projects, Identities: []string{},
		CanCreateGroup: !u.Spec.External || u.Spec.Admin, CanCreateProject: projects > 0, External: u.Spec.External,
	}
	if toAdmin {
		admin, auditor := u.Spec.Admin, u.Spec.Auditor
		shown.IsAdmin, shown.IsAuditor = &admin, &auditor
	}
	return shown
}
