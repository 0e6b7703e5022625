package groups

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/role"
)

type namespacesRequest struct {
	endpoint.Paging
	Search       string `param:"search" doc:"Part of a name or path."`
	OwnedOnly    bool   `param:"owned_only" doc:"Only namespaces that the caller owns."`
	TopLevelOnly bool   `param:"top_level_only" doc:"Only those of root groups and of users."`
}

func (f *Family) namespaces(ctx context.Context, subject auth.Instance, r *namespacesRequest) (endpoint.List[entity.Namespace], error) {
	caller := subject.Caller
	all, err := f.visible(ctx, subject.Subject)
	if err != nil {
		return endpoint.List[entity.Namespace]{}, err
	}
	least := role.Guest
	switch {
	case r.OwnedOnly:
		least = role.Owner
	case caller.Admin:
		least = role.None
	}
	search := strings.ToLower(r.Search)
	all = slices.DeleteFunc(all, func(s catalog.Seen) bool {
		return s.Highest() < least || r.TopLevelOnly && len(s.Groups) > 1 ||
			!strings.Contains(strings.ToLower(catalog.FullPath(s.Groups)), search)
	})
	slices.SortFunc(all, func(a, b catalog.Seen) int { return compare("id", a.Groups[0], b.Groups[0]) })
	return endpoint.Page(r.Paging, all, func(s catalog.Seen) entity.Namespace { return entity.ShowNamespace(s.Groups, f.WebURL) }), nil
}

type namespaceRequest struct {
	Namespace string `param:"namespace" doc:"Id or full path."`
}

func (f *Family) namespace(ctx context.Context, s auth.Instance, r *namespaceRequest) (entity.Namespace, error) {
	caller := s.Caller
	scope, err := f.Guard.Group(ctx, r.Namespace)
	if errors.Is(err, catalog.ErrNotFound) {
		return entity.Namespace{}, endpoint.NotFound("Namespace")
	}
	if err != nil {
		return entity.Namespace{}, err
	}
	access, err := f.Guard.Access(ctx, caller, scope)
	if err == nil && !s.Has(access, auth.ReadGroup) {
		err = endpoint.NotFound("Namespace")
	}
	return entity.ShowNamespace(scope.Groups, f.WebURL), err
}
