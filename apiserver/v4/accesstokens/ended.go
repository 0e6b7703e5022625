package accesstokens

import (
	"context"
	"slices"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/accesstoken"
	"github.com/forgeplane/forgeplane/internal/claim"
)

const (
	// kept is the number of ended tokens, created over REST, that each user keeps.
	kept = 200
	// atOnce is the maximum number of surplus tokens that are removed when another token is created.
	atOnce = 10
)

// tidy removes the oldest ended tokens of a user, so that at most kept remain after one more token ends.
func (f *Family) tidy(ctx context.Context, u *v1alpha1.User) error {
	all, err := accesstoken.Of(ctx, f.Catalog, u)
	if err != nil {
		return err
	}
	now := f.Clock.Now()
	ended := slices.DeleteFunc(all, func(t *v1alpha1.AccessToken) bool {
		return t.Spec.Digest == "" || !accesstoken.Ended(t, now)
	})
	if len(ended) < kept {
		return nil
	}
	slices.SortFunc(ended, func(a, b *v1alpha1.AccessToken) int {
		if claim.Older(a, b) {
			return -1
		}
		return 1
	})
	removed := 0
	for _, t := range ended {
		if removed == atOnce || len(ended)-removed < kept {
			break
		}
		gone, err := f.tokens.SweepUnasked(ctx, t)
		if err != nil {
			return err
		}
		if gone {
			removed++
		}
	}
	return nil
}
