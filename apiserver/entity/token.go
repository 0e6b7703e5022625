package entity

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/bottoken"
)

// Token has the fields of access tokens of users, projects and groups.
type Token struct {
	ID          int64                 `json:"id"`
	Name        string                `json:"name" doc:"Purpose of the token; for that of a project or group, the display name of its bot."`
	Description *string               `json:"description" doc:"Null without a description, as for every personal access token."`
	Revoked     bool                  `json:"revoked"`
	CreatedAt   endpoint.Time         `json:"created_at"`
	Scopes      []v1alpha1.TokenScope `json:"scopes"`
	UserID      int64                 `json:"user_id" doc:"Id of the user, or of the bot."`
	LastUsedAt  endpoint.Time         `json:"last_used_at" doc:"When the token was last used, up to a minute behind; null if it never was."`
	Active      bool                  `json:"active" doc:"Whether the token is accepted: neither revoked nor expired."`
	ExpiresAt   endpoint.Date         `json:"expires_at"`
}

// NewToken is a token with its value, which is shown once.
type NewToken struct {
	Token
	Value string `json:"token" doc:"The value; it is not shown again."`
}

// ShowToken shows the token of a user at a time. used is when it was last used; zero if it never was.
func ShowToken(t *v1alpha1.AccessToken, of *v1alpha1.User, used, now time.Time) Token {
	return Token{
		ID: t.RESTID(), Name: t.Spec.Description, Revoked: t.Spec.Revoked, CreatedAt: endpoint.Time(t.CreationTimestamp.Time),
		Scopes: t.Spec.Scopes, UserID: of.RESTID(), LastUsedAt: endpoint.Time(used), Active: !accesstoken.Ended(t, now), ExpiresAt: dayOf(t.Spec.ExpiresAt),
	}
}

// ShowBotToken is ShowToken for the token of a project or group.
func ShowBotToken(t *v1alpha1.BotToken, used, now time.Time) Token {
	shown := Token{
		ID: t.RESTID(), Name: t.Spec.Name, Revoked: t.Spec.Revoked, CreatedAt: endpoint.Time(t.CreationTimestamp.Time),
		Scopes: t.Spec.Scopes, UserID: bottoken.UserID(t), LastUsedAt: endpoint.Time(used), Active: !bottoken.Ended(t, now), ExpiresAt: dayOf(t.Spec.ExpiresAt),
	}
	if t.Spec.Description != "" {
		shown.Description = &t.Spec.Description
	}
	return shown
}

// dayOf returns the day of a time in UTC, or none.
func dayOf(t *metav1.Time) endpoint.Date {
	if t == nil {
		return endpoint.Date{}
	}
	return endpoint.Date(t.UTC())
}
