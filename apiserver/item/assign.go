package item

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/family"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/milestone"
)

// maxUsers is the maximum number of users in a parameter: each is looked up.
const maxUsers = 200

// Assignable returns the users who can see a project, of those whose ids a parameter has. It leaves out all others, and the id 0.
func Assignable(ctx context.Context, k *family.Kit, in catalog.Scope, parameter string, ids []int64) ([]database.User, error) {
	all := []database.User{}
	if err := limit(parameter, len(ids), maxUsers); err != nil {
		return nil, err
	}
	for _, id := range ids {
		u, err := k.Catalog.User(ctx, v1alpha1.Reference{ID: id})
		if id == 0 || errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		access, err := k.Guard.Access(ctx, auth.Caller{User: u, Admin: u.Spec.Admin}, in)
		if err != nil {
			return nil, err
		}
		if access.Sees() && !slices.Contains(all, User(u)) {
			all = append(all, User(u))
		}
	}
	return all, nil
}

// Milestone returns the id of a milestone that items of a project can have, or 0 if they cannot have it.
func Milestone(ctx context.Context, s *milestone.Store, in catalog.Scope, id int64) (*int64, error) {
	found, err := s.WithIDs(ctx, id)
	if err != nil {
		return nil, err
	}
	if m, known := found[id]; known && HasMilestone(in, m) {
		return &id, nil
	}
	return ptr.To[int64](0), nil
}
