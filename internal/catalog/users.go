package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// User returns the user whom a reference names.
func (c *Catalog) User(ctx context.Context, ref v1alpha1.Reference) (*v1alpha1.User, error) {
	var u *v1alpha1.User
	var err error
	switch {
	case ref.Name != "":
		u = &v1alpha1.User{}
		err = c.get(ctx, client.ObjectKey{Name: ref.Name}, u)
	case ref.Path != "":
		if u, err = c.UserByUsername(ctx, ref.Path); err != nil {
			return nil, err
		}
	default:
		var found []*v1alpha1.User
		found, err = c.users(ctx, IndexID, strconv.FormatInt(ref.ID, 10))
		if u = claim.HolderOfID(found, ref.ID); err == nil && u == nil {
			err = ErrNotFound
		}
	}
	if err == nil && !means(ref, u) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", Show(ref), err)
	}
	return u, nil
}

// UsersWithID returns the users who declare an id, be they in force or not.
func (c *Catalog) UsersWithID(ctx context.Context, id int64) ([]*v1alpha1.User, error) {
	return c.users(ctx, IndexID, strconv.FormatInt(id, 10))
}

// UserByUsername returns the user who holds a username, which is compared without regard to case.
func (c *Catalog) UserByUsername(ctx context.Context, username string) (*v1alpha1.User, error) {
	found, err := c.users(ctx, IndexUsername, strings.ToLower(username))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user %s: %w", username, ErrNotFound)
	}
	return claim.Holder(found, claim.Username(username)), nil
}

// UserByEmail returns the user who holds an address, which is compared without regard to case.
func (c *Catalog) UserByEmail(ctx context.Context, email string) (*v1alpha1.User, error) {
	found, err := c.users(ctx, IndexEmail, strings.ToLower(email))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user of %s: %w", email, ErrNotFound)
	}
	return claim.Holder(found, claim.Email(email)), nil
}

// UserByKubernetes returns the user as whom a Kubernetes identity acts.
func (c *Catalog) UserByKubernetes(ctx context.Context, username string) (*v1alpha1.User, error) {
	found, err := c.users(ctx, IndexKubernetes, username)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user of the Kubernetes identity %s: %w", username, ErrNotFound)
	}
	return claim.Holder(found, claim.Kubernetes(username)), nil
}

// Digest is how the value of a token is kept: SHA-256 in lower-case hexadecimal. Values are long and random, so that
// nothing slower is needed.
func Digest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// TokenByValue returns the access token that has this value, or ErrNotFound. Whether it is still good is the caller's
// to look at.
func (c *Catalog) TokenByValue(ctx context.Context, value string) (*v1alpha1.AccessToken, error) {
	return c.TokenByDigest(ctx, Digest(value))
}

// TokenByDigest is TokenByValue for the Digest of a value.
func (c *Catalog) TokenByDigest(ctx context.Context, digest string) (*v1alpha1.AccessToken, error) {
	found, err := c.tokens(ctx, IndexDigest, digest)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return claim.Holder(found, claim.TokenValue(found[0].Status.Digest)), nil
}

// TokenHolding returns which access token holds the value of a digest when t, in whose Secret it is, claims it as well.
func (c *Catalog) TokenHolding(ctx context.Context, t *v1alpha1.AccessToken, digest string) (*v1alpha1.AccessToken, error) {
	found, err := c.tokens(ctx, IndexDigest, digest)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(o *v1alpha1.AccessToken) bool { return o.UID == t.UID })
	return claim.Holder(append(found, t), claim.TokenValue(digest)), nil
}

// TokensOfSecret returns the access tokens whose value is kept under one key of one Secret.
func (c *Catalog) TokensOfSecret(ctx context.Context, ref v1alpha1.SecretKeyReference) ([]*v1alpha1.AccessToken, error) {
	found, err := c.tokens(ctx, IndexSecret, ref.Name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(t *v1alpha1.AccessToken) bool { return *t.Spec.SecretRef != ref }), nil
}
