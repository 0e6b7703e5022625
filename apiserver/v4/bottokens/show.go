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

// NewToken is a token with its value, which is shown once.
type NewToken struct {
	Token
	Value string `json:"token" doc:"The value; it is not shown again."`
}

// show adds to a token what the REST API shows of those of projects and groups.
func show(t *v1alpha1.BotToken, shown entity.Token) Token {
	return Token{Token: shown, AccessLevel: int(catalog.RoleOf(t.Spec.Role))}
}
