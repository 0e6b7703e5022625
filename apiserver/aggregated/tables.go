package aggregated

import (
	"context"
	"iter"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/aggregated/route"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// RoutesOf returns the routes of endpoints.
func RoutesOf(endpoints iter.Seq[*endpoint.Endpoint]) []route.Pattern {
	var all []route.Pattern
	for e := range endpoints {
		all = append(all, route.Pattern{Method: e.Method(), Path: e.Path(), Polls: e.Waits() > 0})
	}
	return all
}

// KnownIn tells what full paths name in a catalog. It reads memory only.
func KnownIn(cat *catalog.Catalog) route.Known {
	return func(ctx context.Context, fullPath string) route.Kind {
		holder, err := cat.ByPath(ctx, fullPath)
		if err != nil {
			return route.NoKind
		}
		switch holder.(type) {
		case *v1alpha1.Project:
			return route.Project
		case *v1alpha1.Group:
			return route.Group
		default:
			return route.NoKind
		}
	}
}
