package bottoken

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
)

// indexDigest holds the digests of bot tokens.
const indexDigest = "digest"

// Indexes returns the indexes of bot tokens.
func Indexes() []catalog.Index {
	return []catalog.Index{
		{Of: &v1alpha1.BotToken{}, Name: indexDigest, Values: func(o client.Object) []string {
			return catalog.Text(Digest(o.(*v1alpha1.BotToken)))
		}},
	}
}

// Digest returns the digest of the value that a token is recognized by, or "" if there is none: the declared one, or that of the value in its
// Secret when a controller last read it.
func Digest(t *v1alpha1.BotToken) string { return cmp.Or(t.Spec.Digest, t.Status.Digest) }

// ByDigest returns the token with a value, by the digest, or catalog.ErrNotFound. It may have ended.
func ByDigest(ctx context.Context, c *catalog.Catalog, digest string) (*v1alpha1.BotToken, error) {
	found, err := catalog.List[*v1alpha1.BotToken](ctx, c, indexDigest, digest)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, catalog.ErrNotFound
	}
	return claim.Holder(found, claim.BotTokenValue(digest)), nil
}

// Holder returns the token that holds the value of a digest if t claims it as well.
func Holder(ctx context.Context, c *catalog.Catalog, t *v1alpha1.BotToken, digest string) (*v1alpha1.BotToken, error) {
	found, err := catalog.List[*v1alpha1.BotToken](ctx, c, indexDigest, digest)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o *v1alpha1.BotToken) bool { return o.UID == t.UID })
	return claim.Holder(append(found, t), claim.BotTokenValue(digest)), nil
}

// OfSecret returns the tokens of a namespace whose value is under one key of one Secret.
func OfSecret(ctx context.Context, c *catalog.Catalog, namespace string, ref v1alpha1.SecretKeyReference) ([]*v1alpha1.BotToken, error) {
	found, err := catalog.List[*v1alpha1.BotToken](ctx, c, credential.IndexSecret, credential.Key(namespace, ref.Name))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t *v1alpha1.BotToken) bool { return *t.Spec.SecretRef != ref }), nil
}
