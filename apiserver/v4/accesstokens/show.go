package accesstokens

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/tokenuse"
)

// owned is a token with its owner.
type owned struct {
	*v1alpha1.AccessToken
	user *v1alpha1.User
}

// Parameter implements auth.Kept.
func (owned) Parameter() string { return "Id of the token." }

// Owner implements auth.Kept.
func (t owned) Owner() types.UID { return t.user.UID }

// used returns the time of the last use of each token. It omits tokens without a known use.
func (f *Family) used(ctx context.Context, tokens ...owned) map[types.UID]time.Time {
	return tokenuse.Known(ctx, f.Activity.Uses, tokenuse.KindAccessToken, tokens...)
}

// show shows a token. used may be nil for a token that was never used.
func (f *Family) show(t owned, used map[types.UID]time.Time) entity.Token {
	return entity.ShowToken(t.AccessToken, t.user, used[t.UID], f.Clock.Now())
}
