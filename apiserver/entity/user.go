package entity

import (
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// UserSummary is "User summary" of the core interface document.
type UserSummary struct {
	ID        int64   `json:"id"`
	Username  string  `json:"username"`
	Name      string  `json:"name"`
	State     string  `json:"state" doc:"active, blocked, deactivated or banned."`
	AvatarURL *string `json:"avatar_url"`
	WebURL    string  `json:"web_url"`
}

// SummarizeUser shows what others see of a user; webURL is the address of the installation, without a slash at its end.
func SummarizeUser(u *v1alpha1.User, webURL string) UserSummary {
	return UserSummary{
		ID: u.RESTID(), Username: u.Spec.Username, Name: catalog.DisplayName(u), State: UserState(u),
		AvatarURL: AvatarURL(u, webURL), WebURL: webURL + "/" + u.Spec.Username,
	}
}

// UserState is the state of a user in the words of the REST API.
func UserState(u *v1alpha1.User) string { return strings.ToLower(string(u.InState())) }
