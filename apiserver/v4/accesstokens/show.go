package accesstokens

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Token is a personal access token.
type Token struct {
	ID          int64                 `json:"id"`
	Name        string                `json:"name" doc:"Purpose of the token."`
	Description *string               `json:"description" doc:"Always null."`
	Revoked     bool                  `json:"revoked"`
	CreatedAt   endpoint.Time         `json:"created_at"`
	Scopes      []v1alpha1.TokenScope `json:"scopes"`
	UserID      int64                 `json:"user_id"`
	LastUsedAt  endpoint.Time         `json:"last_used_at" doc:"Always null."`
	Active      bool                  `json:"active" doc:"Whether the token is accepted: neither revoked nor expired."`
	ExpiresAt   endpoint.Date         `json:"expires_at"`
}

// NewToken is a token with its value, which is shown once.
type NewToken struct {
	Token
	Value string `json:"token" doc:"The value; it is not shown again."`
}

// owned is a token with the user whom it stands for.
type owned struct {
	*v1alpha1.AccessToken
	user *v1alpha1.User
}

// Parameter implements auth.Kept.
func (owned) Parameter() string { return "Id of the token." }

// Owner implements auth.Kept.
func (t owned) Owner() types.UID { return t.user.UID }

func (t owned) expired(now time.Time) bool {
	return t.Spec.ExpiresAt != nil && !now.Before(t.Spec.ExpiresAt.Time)
}

func (t owned) show(now time.Time) Token {
	shown := Token{
		ID: t.RESTID(), Name: t.Spec.Description, Revoked: t.Spec.Revoked, CreatedAt: endpoint.Time(t.CreationTimestamp.Time),
		Scopes: t.Spec.Scopes, UserID: t.user.RESTID(), Active: !t.Spec.Revoked && !t.expired(now),
	}
	if t.Spec.ExpiresAt != nil {
		shown.ExpiresAt = endpoint.Date(t.Spec.ExpiresAt.UTC())
	}
	return shown
}
