package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/claim"
)

// User returns the user whom a reference names.
func (c *Catalog) User(ctx context.Context, ref v1alpha1.Reference) (*v1alpha1.User, error) {
	var u *v1alpha1.User
	var err error
	switch {
	case ref.Name != "":
		u, err = get[*v1alpha1.User](ctx, c, "", ref.Name)
	case ref.Path != "":
		if u, err = c.UserByUsername(ctx, ref.Path); err != nil {
			return nil, err
		}
	default:
		u, err = ByID[*v1alpha1.User](ctx, c, ref.ID)
	}
	if err == nil && !Means(ref, u) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", Show(ref), err)
	}
	return u, nil
}

// UserByUsername returns the user who holds a username. Case does not matter.
func (c *Catalog) UserByUsername(ctx context.Context, username string) (*v1alpha1.User, error) {
	found, err := List[*v1alpha1.User](ctx, c, IndexUsername, strings.ToLower(username))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user %s: %w", username, ErrNotFound)
	}
	return claim.Holder(found, claim.Username(username)), nil
}

// UserByEmail returns the user who holds an email address. Case does not matter.
func (c *Catalog) UserByEmail(ctx context.Context, email string) (*v1alpha1.User, error) {
	found, err := List[*v1alpha1.User](ctx, c, IndexEmail, strings.ToLower(email))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user of %s: %w", email, ErrNotFound)
	}
	return claim.Holder(found, claim.Email(email)), nil
}

// UserByKubernetes returns the user for whom a Kubernetes identity acts.
func (c *Catalog) UserByKubernetes(ctx context.Context, username string) (*v1alpha1.User, error) {
	found, err := List[*v1alpha1.User](ctx, c, IndexKubernetes, username)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("user of the Kubernetes identity %s: %w", username, ErrNotFound)
	}
	return claim.Holder(found, claim.Kubernetes(username)), nil
}
