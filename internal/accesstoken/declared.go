package accesstoken

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/internal/credential"
)

const (
	// IndexSecret holds the names of the Secrets that access tokens are kept in.
	IndexSecret = "secret"
	// indexDigest holds the digests of access tokens.
	indexDigest = "digest"
)

// Indexes returns the indexes of access tokens.
func Indexes() []catalog.Index {
	return []catalog.Index{
		{Of: &v1alpha1.AccessToken{}, Name: indexDigest, Values: func(o client.Object) []string {
			return catalog.Text(o.(*v1alpha1.AccessToken).Status.Digest)
		}},
		{Of: &v1alpha1.AccessToken{}, Name: IndexSecret, Values: func(o client.Object) []string {
			if ref := o.(*v1alpha1.AccessToken).Spec.SecretRef; ref != nil {
				return []string{ref.Name}
			}
			return nil
		}},
		{Of: &v1alpha1.AccessToken{}, Name: catalog.IndexUser, Values: func(o client.Object) []string {
			return []string{catalog.Key("", o.(*v1alpha1.AccessToken).Spec.UserRef)}
		}},
	}
}

// Of returns the access tokens that stand for a user.
func Of(ctx context.Context, c *catalog.Catalog, u *v1alpha1.User) ([]*v1alpha1.AccessToken, error) {
	keys, err := c.HeldKeys(ctx, u)
	if err != nil {
		return nil, err
	}
	found, err := catalog.List[*v1alpha1.AccessToken](ctx, c, catalog.IndexUser, keys...)
	return slices.DeleteFunc(found, func(t *v1alpha1.AccessToken) bool { return !catalog.Means(t.Spec.UserRef, u) }), err
}

// ByValue returns the access token that has this value, or catalog.ErrNotFound. Whether it is still good is the caller's
// to look at.
func ByValue(ctx context.Context, c *catalog.Catalog, value string) (*v1alpha1.AccessToken, error) {
	return ByDigest(ctx, c, credential.Digest(value))
}

// ByDigest is ByValue for the digest of a value.
func ByDigest(ctx context.Context, c *catalog.Catalog, digest string) (*v1alpha1.AccessToken, error) {
	found, err := catalog.List[*v1alpha1.AccessToken](ctx, c, indexDigest, digest)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, catalog.ErrNotFound
	}
	return claim.Holder(found, claim.TokenValue(found[0].Status.Digest)), nil
}

// Holder returns which access token holds the value of a digest when t, in whose Secret it is, claims it as well.
func Holder(ctx context.Context, c *catalog.Catalog, t *v1alpha1.AccessToken, digest string) (*v1alpha1.AccessToken, error) {
	found, err := catalog.List[*v1alpha1.AccessToken](ctx, c, indexDigest, digest)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o *v1alpha1.AccessToken) bool { return o.UID == t.UID })
	return claim.Holder(append(found, t), claim.TokenValue(digest)), nil
}

// OfSecret returns the access tokens whose value is kept under one key of one Secret.
func OfSecret(ctx context.Context, c *catalog.Catalog, ref v1alpha1.SecretKeyReference) ([]*v1alpha1.AccessToken, error) {
	found, err := catalog.List[*v1alpha1.AccessToken](ctx, c, IndexSecret, ref.Name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t *v1alpha1.AccessToken) bool { return *t.Spec.SecretRef != ref }), nil
}
