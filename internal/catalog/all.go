package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// Users returns all users, in no order. Its cost grows with their number.
func (c *Catalog) Users(ctx context.Context) ([]*v1alpha1.User, error) {
	var l v1alpha1.UserList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	return pointers(l.Items), nil
}

// Tokens returns all access tokens, in no order.
func (c *Catalog) Tokens(ctx context.Context) ([]*v1alpha1.AccessToken, error) {
	var l v1alpha1.AccessTokenList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing access tokens: %w", err)
	}
	return pointers(l.Items), nil
}

// TokensOf returns the access tokens that stand for a user.
func (c *Catalog) TokensOf(ctx context.Context, u *v1alpha1.User) ([]*v1alpha1.AccessToken, error) {
	keys, err := c.heldKeys(ctx, u)
	if err != nil {
		return nil, err
	}
	found, err := c.tokens(ctx, IndexUser, keys...)
	return slices.DeleteFunc(found, func(t *v1alpha1.AccessToken) bool { return !means(t.Spec.UserRef, u) }), err
}

// Token returns the access token that has a REST id, or ErrNotFound.
func (c *Catalog) Token(ctx context.Context, id int64) (*v1alpha1.AccessToken, error) {
	found, err := c.tokens(ctx, IndexID, strconv.FormatInt(id, 10))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("access token with id %d: %w", id, ErrNotFound)
	}
	return claim.HolderOfID(found, id), nil
}

// DeployKeys returns all deploy keys, in no order.
func (c *Catalog) DeployKeys(ctx context.Context) ([]*v1alpha1.DeployKey, error) {
	var l v1alpha1.DeployKeyList
	if err := c.reader.List(ctx, &l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing deploy keys: %w", err)
	}
	return pointers(l.Items), nil
}

// DeployKeyByID returns the deploy key that has a REST id, in whatever namespace, or ErrNotFound.
func (c *Catalog) DeployKeyByID(ctx context.Context, id int64) (*v1alpha1.DeployKey, error) {
	found, err := c.deployKeys(ctx, IndexID, strconv.FormatInt(id, 10))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("deploy key with id %d: %w", id, ErrNotFound)
	}
	return claim.HolderOfID(found, id), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
