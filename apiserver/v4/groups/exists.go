package groups

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// Existence says whether a path is taken.
type Existence struct {
	Exists   bool     `json:"exists"`
	Suggests []string `json:"suggests" doc:"A similar path that is free, if the path is taken."`
}

type existsRequest struct {
	Namespace string                   `param:"namespace" doc:"Segment of a full path."`
	ParentID  endpoint.Optional[int64] `param:"parent_id" doc:"Id of the group below which the path is looked for; at the root when omitted."`
}

// maxSuggestions is the maximum number of paths to try for a suggestion.
const maxSuggestions = 100

// exists reports whether a group or user has a path. Callers who can create the group would learn that anyway. For other callers, groups
// that they cannot see do not exist.
func (f *Family) exists(ctx context.Context, s auth.Instance, r *existsRequest) (Existence, error) {
	free := Existence{Suggests: []string{}}
	if strings.Contains(r.Namespace, "/") {
		return free, nil
	}
	above, creates, err := f.parent(ctx, s, r)
	if err != nil {
		return free, catalog.IgnoreNotFound(err)
	}
	for n := range maxSuggestions {
		path := r.Namespace
		if n > 0 {
			path += strconv.Itoa(n)
		}
		exists, err := f.occupied(ctx, s, above, path, creates)
		switch {
		case err != nil:
			return free, err
		case exists:
			free.Exists = true
		case n > 0:
			free.Suggests = []string{path}
			return free, nil
		default:
			return free, nil
		}
	}
	return free, nil
}

// parent returns the parent group of a path and the groups above it, or nil for the root. creates reports whether the caller can create
// groups there. The error is catalog.ErrNotFound if the caller cannot see the group.
func (f *Family) parent(ctx context.Context, s auth.Instance, r *existsRequest) (above []*v1alpha1.Group, creates bool, err error) {
	if !r.ParentID.Set || r.ParentID.Null {
		return nil, f.mayCreateRoot(s.Caller, f.Home, r.Namespace), nil
	}
	scope, err := f.Guard.Group(ctx, strconv.FormatInt(r.ParentID.Value, 10))
	if err != nil {
		return nil, false, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, scope)
	if err == nil && !s.Has(access, auth.ReadGroup) {
		err = catalog.ErrNotFound
	}
	return scope.Groups, s.Has(access, auth.CreateSubgroups), err
}

// occupied reports whether a group or user that the caller can see has a path.
func (f *Family) occupied(ctx context.Context, s auth.Instance, above []*v1alpha1.Group, path string, creates bool) (bool, error) {
	holder, err := f.Catalog.ByPath(ctx, catalog.FullPath(above, path))
	if errors.Is(err, catalog.ErrNotFound) && len(above) == 0 {
		_, err = f.Catalog.UserByUsername(ctx, path)
		return err == nil, catalog.IgnoreNotFound(err)
	}
	g, group := holder.(*v1alpha1.Group)
	if err != nil || !group || creates {
		return group, catalog.IgnoreNotFound(err)
	}
	chain, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return false, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, catalog.Scope{Groups: chain})
	return s.Has(access, auth.ReadGroup), err
}
