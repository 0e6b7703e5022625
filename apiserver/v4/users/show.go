package users

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Summary is "User summary" of the core interface document.
type Summary struct {
	ID        int64   `json:"id"`
	Username  string  `json:"username"`
	Name      string  `json:"name"`
	State     string  `json:"state" doc:"active or blocked."`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
}

// User is the extended user record.
type User struct {
	Summary
	CreatedAt        endpoint.Time `json:"created_at"`
	Bio              string        `json:"bio"`
	Location         string        `json:"location"`
	PublicEmail      string        `json:"public_email"`
	WebsiteURL       string        `json:"website_url"`
	Organization     string        `json:"organization"`
	Bot              bool          `json:"bot"`
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
	IsAdmin          *bool         `json:"is_admin,omitempty" doc:"Shown to administrators only."`
}

// projectsLimit is shown for compatibility; there is no limit.
const projectsLimit = 100_000

// Summarise is how others see a user.
func Summarise(u *v1alpha1.User, webURL string) Summary {
	state := "active"
	if u.Spec.State == v1alpha1.UserBlocked {
		state = "blocked"
	}
	return Summary{
		ID: u.Spec.ID, Username: u.Spec.Username, Name: catalog.DisplayName(u), State: state,
		WebURL: webURL + "/" + u.Spec.Username,
	}
}

// full is how a user sees himself, and administrators see him.
func full(u *v1alpha1.User, webURL string, toAdmin bool) User {
	created := endpoint.Time(u.CreationTimestamp.Time)
	shown := User{
		Summary: Summarise(u, webURL), CreatedAt: created, ConfirmedAt: created,
		Bot: u.Spec.Type == v1alpha1.UserBot, Email: u.Spec.Email,
		ThemeID: 1, ColorSchemeID: 1, ProjectsLimit: projectsLimit, Identities: []string{},
		CanCreateGroup: true, CanCreateProject: true,
	}
	if toAdmin {
		admin := u.Spec.Admin
		shown.IsAdmin = &admin
	}
	return shown
}
