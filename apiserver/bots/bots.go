// Package bots has what families do with the access tokens of projects and groups, which authenticate bots.
package bots

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// Tokens is the store of the access tokens of projects and groups.
type Tokens struct {
	store.Identified[*v1alpha1.BotToken]
	uses  tokenuse.Reader
	clock clock.PassiveClock
}

// New returns the store.
func New(k family.Kit) *Tokens {
	own := func(ctx context.Context, c *catalog.Catalog, in catalog.Scope) ([]*v1alpha1.BotToken, error) {
		return catalog.ListInScope[*v1alpha1.BotToken](ctx, c, in)
	}
	return &Tokens{Identified: store.ByID(k.Writer, k.Catalog, own), uses: k.Activity.Uses, clock: k.Clock}
}

// Uses has when tokens were last used, by their UIDs.
type Uses map[types.UID]time.Time

// Used returns the known times of the last use of the tokens.
func (s *Tokens) Used(ctx context.Context, tokens ...*v1alpha1.BotToken) Uses {
	return tokenuse.Known(ctx, s.uses, tokenuse.KindBotToken, tokens...)
}

// Show shows a token. used can be nil for a token that was never used.
func (s *Tokens) Show(t *v1alpha1.BotToken, used Uses) entity.Token {
	return entity.ShowBotToken(t, used[t.UID], s.clock.Now())
}

// Rotate gives a token another value, and shows it. The token keeps its id and its bot. Of two who rotate the same token at the same time one
// succeeds. The error is an answer if the token has ended or has its value in a Secret, or if the day is not in the future.
func (s *Tokens) Rotate(ctx context.Context, of auth.Subject, old *v1alpha1.BotToken, day endpoint.Optional[time.Time]) (entity.NewToken, error) {
	if old.Spec.SecretRef != nil {
		return entity.NewToken{}, endpoint.Forbidden("The value of this token is in a Kubernetes Secret: rotate it there")
	}
	expires, ok := accesstoken.Expiry(day.Or(time.Time{}), accesstoken.RotatedLifetime, s.clock.Now())
	if !ok {
		return entity.NewToken{}, endpoint.BadRequest("expires_at must be a date in the future")
	}
	used, value := s.Used(ctx, old), accesstoken.Generate()
	t, err := s.Update(ctx, of, old.RESTID(), func(t *v1alpha1.BotToken) error {
		if t.Spec.Revoked || t.Spec.Digest != old.Spec.Digest {
			return endpoint.BadRequest("token already revoked")
		}
		t.Spec.Digest, t.Spec.ExpiresAt = credential.Digest(value), &expires
		return nil
	})
	if err != nil {
		return entity.NewToken{}, err
	}
	return entity.NewToken{Token: s.Show(t, used), Value: value}, nil
}

// Revoke ends the token with an id. It makes no difference whether it had ended before.
func (s *Tokens) Revoke(ctx context.Context, of auth.Subject, id int64) error {
	_, err := s.Update(ctx, of, id, func(t *v1alpha1.BotToken) error {
		t.Spec.Revoked = true
		return nil
	})
	return err
}

// Self returns the subject of a request that a bot makes about its own token.
func Self(s auth.Subject) auth.Subject {
	s.Scope = s.Caller.Bot.Of
	return s
}
