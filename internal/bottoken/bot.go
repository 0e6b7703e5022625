// Package bottoken knows the bots that the access tokens of projects and groups authenticate, and finds the tokens.
package bottoken

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// upper is half of the range of ids. The bot of a token has the id of the token in the other half of the range, so it is never allocated, and
// ids that are allocated to users do not reach it. The bot is refused if a User has its id all the same.
const upper = 1 << 52

// UserID returns the id that the bot of a token has as a user; 0 if the token has no id.
func UserID(t *v1alpha1.BotToken) int64 {
	if id := t.RESTID(); id > 0 {
		return id ^ upper
	}
	return 0
}

// TokenID returns the id of the token whose bot has an id as a user.
func TokenID(user int64) int64 { return user ^ upper }

// Username returns the username of the bot of a token of a project or group. It stays the same when the token is rotated.
func Username(t *v1alpha1.BotToken, of catalog.Scope) string {
	kind := "group"
	if of.Project != nil {
		kind = "project"
	}
	const digits = 32
	return fmt.Sprintf("%s_%d_bot_%s", kind, of.RESTID(), credential.Digest(string(t.UID))[:digits])
}

// User returns the bot of a token of a project or group as a user. No User is declared for it: it is never an administrator, sees internal
// projects only if it is a member, and owns nothing. Nothing that is declared can refer to it.
func User(t *v1alpha1.BotToken, of catalog.Scope) *v1alpha1.User {
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{
		ID: UserID(t), Username: Username(t, of), Name: t.Spec.Name, Type: v1alpha1.UserBot, External: true, State: v1alpha1.UserActive,
	}}
	u.UID, u.ResourceVersion, u.CreationTimestamp, u.Status.ID = t.UID, t.ResourceVersion, t.CreationTimestamp, u.Spec.ID
	u.Spec.Email = u.Spec.Username + "@noreply.invalid"
	return u
}

// Bot is the bot of a token.
type Bot struct {
	catalog.Bot
	Token *v1alpha1.BotToken
	// Of is the project or group of the token.
	Of catalog.Scope
	// User describes the bot as a user.
	User *v1alpha1.User
}

// Of returns the bot of a token, whether or not the token is accepted. The error is catalog.ErrNotFound if the token belongs to no project or
// group, or if a User has the id of the bot.
func Of(ctx context.Context, c *catalog.Catalog, t *v1alpha1.BotToken) (Bot, error) {
	of, err := c.ScopeOf(ctx, t)
	if catalog.Misplaced(err) {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return Bot{}, err
	}
	if UserID(t) == 0 || !catalog.Belongs(t, of.Target()) || !of.Target().GetDeletionTimestamp().IsZero() {
		return Bot{}, catalog.ErrNotFound
	}
	// An administrator can pin any id for a User.
	if _, err := catalog.ByID[*v1alpha1.User](ctx, c, UserID(t)); !errors.Is(err, catalog.ErrNotFound) {
		return Bot{}, errors.Join(err, catalog.ErrNotFound)
	}
	holds, err := c.HoldsID(ctx, t)
	if err == nil && !holds {
		err = catalog.ErrNotFound
	}
	return Bot{
		Bot: catalog.Bot{Target: of.Target().GetUID(), Role: catalog.RoleOf(t.Spec.Role)}, Token: t, Of: of, User: User(t, of),
	}, err
}

// ByUserID returns the bot that has an id as a user, or catalog.ErrNotFound.
func ByUserID(ctx context.Context, c *catalog.Catalog, id int64) (Bot, error) {
	t, err := catalog.ByID[*v1alpha1.BotToken](ctx, c, TokenID(id))
	if err != nil {
		return Bot{}, err
	}
	return Of(ctx, c, t)
}

// ByUsername returns the bot that has a username, whatever its case, or catalog.ErrNotFound.
func ByUsername(ctx context.Context, c *catalog.Catalog, username string) (Bot, error) {
	of, err := namedIn(ctx, c, strings.ToLower(username))
	if catalog.Misplaced(err) {
		err = catalog.ErrNotFound
	}
	if err != nil {
		return Bot{}, err
	}
	tokens, err := catalog.ListInScope[*v1alpha1.BotToken](ctx, c, of)
	if err != nil {
		return Bot{}, err
	}
	for _, t := range tokens {
		if strings.EqualFold(Username(t, of), username) {
			return Of(ctx, c, t)
		}
	}
	return Bot{}, catalog.ErrNotFound
}

// namedIn returns the project or group whose id is in the username of a bot.
func namedIn(ctx context.Context, c *catalog.Catalog, username string) (of catalog.Scope, err error) {
	kind, rest, _ := strings.Cut(username, "_")
	number, _, bot := strings.Cut(rest, "_bot_")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !bot {
		return of, catalog.ErrNotFound
	}
	switch kind {
	case "project":
		p, err := catalog.ByID[*v1alpha1.Project](ctx, c, id)
		if err != nil {
			return of, err
		}
		return c.ProjectScope(ctx, p)
	case "group":
		g, err := catalog.ByID[*v1alpha1.Group](ctx, c, id)
		if err != nil {
			return of, err
		}
		of.Groups, err = c.Ancestors(ctx, g)
		return of, err
	default:
		return of, catalog.ErrNotFound
	}
}

// In returns the bots of a project or group itself whose tokens have not ended, sorted by the ids of their tokens.
func In(ctx context.Context, c *catalog.Catalog, s catalog.Scope, now time.Time) ([]Bot, error) {
	tokens, err := catalog.ListInScope[*v1alpha1.BotToken](ctx, c, s)
	if err != nil {
		return nil, err
	}
	var bots []Bot
	for _, t := range tokens {
		if Ended(t, now) || !t.DeletionTimestamp.IsZero() {
			continue
		}
		b, err := Of(ctx, c, t)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		bots = append(bots, b)
	}
	slices.SortFunc(bots, func(a, b Bot) int { return cmp.Compare(a.Token.RESTID(), b.Token.RESTID()) })
	return bots, nil
}

// Is reports whether the bot is the one of a token with a UID.
func (b Bot) Is(token types.UID) bool { return b.Token.UID == token }

// Expired reports whether a token has expired.
func Expired(t *v1alpha1.BotToken, now time.Time) bool {
	return t.Spec.ExpiresAt != nil && !now.Before(t.Spec.ExpiresAt.Time)
}

// Ended reports whether a token is revoked or has expired.
func Ended(t *v1alpha1.BotToken, now time.Time) bool { return t.Spec.Revoked || Expired(t, now) }
