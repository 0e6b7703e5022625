package bottokens

import (
	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Token is an access token of a project or group.
type Token struct {
	entity.Token
	AccessLevel int `json:"access_level" doc:"Role of the bot."`
}

// NewToken is a token with its value, which only one response contains.
type NewToken struct {
	Token
	Value string `json:"token" doc:"The value; it is not shown again."`
}

// show adds the fields that tokens of projects and groups have in the REST API.
func show(t *v1alpha1.BotToken, shown entity.Token) Token {
	return Token{Token: shown, AccessLevel: int(catalog.RoleOf(t.Spec.Role))}
}
