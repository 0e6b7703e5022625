package issues

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/item"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/epic"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// epic checks that the caller can see an epic and that it can contain issues of the project, and returns its id. The id 0 removes the epic.
func (f *Family) epic(ctx context.Context, s auth.Subject, id int64) (*int64, error) {
	if id == 0 {
		return &id, nil
	}
	seen, err := f.seenEpics(ctx, s, []int64{id})
	if err != nil {
		return nil, err
	}
	if e, known := seen[id]; known && item.GroupPath(s.Scope, e.In) != "" {
		return &id, nil
	}
	return nil, endpoint.NotFound("Epic")
}

// seenEpics returns the epics with the given ids that the caller can see.
func (f *Family) seenEpics(ctx context.Context, s auth.Subject, ids []int64) (map[int64]epic.Epic, error) {
	all, err := f.Activity.Epics.WithIDs(ctx, ids...)
	for id, e := range all {
		if err != nil {
			break
		}
		var sees bool
		if sees, err = f.seesEpic(ctx, s, e); !sees {
			delete(all, id)
		}
	}
	return all, err
}

// seesEpic reports whether the caller sees an epic.
func (f *Family) seesEpic(ctx context.Context, s auth.Subject, e epic.Epic) (bool, error) {
	g, err := catalog.ByID[*v1alpha1.Group](ctx, f.Catalog, e.In.ID)
	if err != nil || g.UID != e.In.UID {
		return false, catalog.IgnoreNotFound(err)
	}
	chain, err := f.Catalog.Ancestors(ctx, g)
	if err != nil {
		return false, err
	}
	access, err := f.Guard.Access(ctx, s.Caller, catalog.Scope{Groups: chain})
	if err != nil || !access.Sees() {
		return false, err
	}
	return !e.Confidential || s.Has(access, auth.ReadConfidentialEpics) || e.Author.UID == item.Viewer(s), nil
}

// inEpic returns the condition of the filter for an epic. Epics that the caller cannot see count as if they did not exist.
func (f *Family) inEpic(ctx context.Context, s auth.Subject, in places, sent endpoint.Either[int64]) ([]issue.Condition, error) {
	if !sent.Set {
		return nil, nil
	}
	if sent.Word != "" {
		seen, err := f.epicsAbove(ctx, s, in)
		return []issue.Condition{item.Is(issue.InEpic(seen), sent.Word == item.AnyWord)}, err
	}
	seen, err := f.seenEpics(ctx, s, []int64{sent.Value})
	return []issue.Condition{issue.InEpics(slices.Collect(maps.Keys(seen))...)}, err
}

// epicsAbove selects the epics that the caller can see in the groups above some projects.
func (f *Family) epicsAbove(ctx context.Context, s auth.Subject, in places) (issue.SeenEpics, error) {
	seen, done := issue.SeenEpics{Viewer: in.Viewer}, sets.New[types.UID]()
	for _, project := range in.Scopes {
		for i, g := range project.Groups {
			if done.Has(g.UID) {
				break // and the groups above it
			}
			done.Insert(g.UID)
			access, err := f.Guard.Access(ctx, s.Caller, catalog.Scope{Groups: project.Groups[i:]})
			if err != nil {
				return seen, err
			}
			if access.Sees() {
				seen.Groups = append(seen.Groups, g.UID)
			}
			if s.Has(access, auth.ReadConfidentialEpics) {
				seen.Trusted = append(seen.Trusted, g.UID)
			}
		}
	}
	return seen, nil
}
