package auth

import (
	"context"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/bottoken"
)

// BotNamed returns the user of the bot that has a username. The error is catalog.ErrNotFound if no bot has it, or if the caller cannot see the
// project or group of the bot: the name of a bot is the name that its token has there.
func (g *Guard) BotNamed(ctx context.Context, c Caller, username string) (*v1alpha1.User, error) {
	b, err := bottoken.ByUsername(ctx, g.catalog, username)
	return g.asUser(ctx, c, b, err)
}

// botWithID is BotNamed for the id that the bot has as a user.
func (g *Guard) botWithID(ctx context.Context, c Caller, id int64) (*v1alpha1.User, error) {
	b, err := bottoken.ByUserID(ctx, g.catalog, id)
	return g.asUser(ctx, c, b, err)
}

func (g *Guard) asUser(ctx context.Context, c Caller, b bottoken.Bot, err error) (*v1alpha1.User, error) {
	if err != nil {
		return nil, err
	}
	if _, err := g.Visible(ctx, c, b.Of); err != nil {
		return nil, err
	}
	return b.User, nil
}
