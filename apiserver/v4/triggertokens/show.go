package triggertokens

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
)

// Token is a pipeline trigger token.
type Token struct {
	ID          int64               `json:"id"`
	Description string              `json:"description"`
	CreatedAt   endpoint.Time       `json:"created_at"`
	UpdatedAt   endpoint.Time       `json:"updated_at" doc:"Time of the last change of the declaration."`
	LastUsed    endpoint.Time       `json:"last_used"`
	Token       string              `json:"token" doc:"The token for its owner, otherwise its first four characters. Empty if no token is active, or if it is stored in a Secret of the project's namespace."`
	Owner       *entity.UserSummary `json:"owner" doc:"Owner of the token; null if it has no owner."`
}

func (f *Family) showOne(ctx context.Context, s auth.Subject, t *v1alpha1.TriggerToken) (Token, error) {
	shown, err := f.show(ctx, s, t)
	return shown[t.UID], err
}

// show returns tokens as the caller sees them.
func (f *Family) show(ctx context.Context, s auth.Subject, tokens ...*v1alpha1.TriggerToken) (map[types.UID]Token, error) {
	used := tokenuse.Known(ctx, f.Activity.Uses, tokenuse.KindTriggerToken, tokens...)
	shown := make(map[types.UID]Token, len(tokens))
	for _, t := range tokens {
		owner, err := f.ownerOf(ctx, t)
		if err != nil {
			return nil, err
		}
		value, err := f.Credentials.TriggerToken(ctx, t)
		if err != nil {
			return nil, err
		}
		if !is(s, owner) {
			value = triggertoken.Short(value)
		}
		shown[t.UID] = Token{
			ID: t.RESTID(), Description: t.Spec.Description, LastUsed: endpoint.Time(used[t.UID]),
			CreatedAt: endpoint.Time(t.CreationTimestamp.Time), UpdatedAt: endpoint.Time(store.Changed(t)),
			Token: value, Owner: f.summary(owner),
		}
	}
	return shown, nil
}

// owned is a token with its owner, which can be nil.
type owned struct {
	*v1alpha1.TriggerToken
	user *v1alpha1.User
}

// Parameter implements auth.Kept.
func (owned) Parameter() string { return "Id of the trigger token." }

// Owner implements auth.Kept.
func (t owned) Owner() types.UID {
	if t.user == nil {
		return ""
	}
	return t.user.UID
}

// find returns the token of the project with an id.
func (f *Family) find(ctx context.Context, s auth.Subject, id int64) (owned, error) {
	t, err := f.tokens.Get(ctx, s, id)
	if err != nil {
		return owned{}, err
	}
	u, err := f.ownerOf(ctx, t)
	return owned{t, u}, err
}

// ownerOf returns the owner of a token, or nil.
func (f *Family) ownerOf(ctx context.Context, t *v1alpha1.TriggerToken) (*v1alpha1.User, error) {
	if t.Spec.OwnerRef == nil {
		return nil, nil
	}
	u, err := f.Catalog.User(ctx, *t.Spec.OwnerRef)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return u, err
}

// is reports whether the caller is the user, which can be nil.
func is(s auth.Subject, u *v1alpha1.User) bool {
	caller := s.Caller.User
	return u != nil && caller != nil && caller.UID == u.UID
}

func (f *Family) summary(u *v1alpha1.User) *entity.UserSummary {
	if u == nil {
		return nil
	}
	shown := entity.SummarizeUser(u, f.WebURL)
	return &shown
}
