// Package profile is how the REST API shows a user wherever one occurs.
package profile

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
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

// Of is how others see a user; webURL is the address of the installation, without a slash at its end.
func Of(u *v1alpha1.User, webURL string) Summary {
	state := "active"
	if u.Spec.State == v1alpha1.UserBlocked {
		state = "blocked"
	}
	return Summary{
		ID: u.RESTID(), Username: u.Spec.Username, Name: catalog.DisplayName(u), State: state,
		WebURL: webURL + "/" + u.Spec.Username,
	}
}
