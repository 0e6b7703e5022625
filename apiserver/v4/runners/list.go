package runners

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/runner"
)

// filters select runners.
type filters struct {
	endpoint.Paging
	Type   string                  `param:"type" values:"instance_type,group_type,project_type" doc:"Only runners of this type."`
	Status string                  `param:"status" values:"online,offline,stale,never_contacted,active,paused" doc:"Only runners with this status."`
	Paused endpoint.Optional[bool] `param:"paused" doc:"Only paused runners, or only others."`
	Tags   []string                `param:"tag_list" comma:"" doc:"Only runners with all of these tags."`
	Scope  string                  `param:"scope" values:"active,paused,online,offline,shared,specific" doc:"Deprecated: only runners with this status or type."`
}

// conditions translates the filters.
func (f *Family) conditions(r *filters) (all []runner.Condition) {
	now := f.Clock.Now()
	status := map[string]runner.Condition{
		"active": runner.Paused(false), "paused": runner.Paused(true), "never_contacted": runner.NeverContacted(),
		"online": runner.HeardSince(now.Add(-online)), "offline": runner.SilentSince(now.Add(-online)),
		"stale": runner.SilentSince(now.Add(-stale)), "shared": runner.Of(runner.OfInstance), "specific": database.Not(runner.Of(runner.OfInstance)),
	}
	for _, name := range []string{r.Status, r.Scope} {
		if name != "" {
			all = append(all, status[name])
		}
	}
	if r.Type != "" {
		all = append(all, runner.Of(runner.Type(r.Type)))
	}
	if r.Paused.Set && !r.Paused.Null {
		all = append(all, runner.Paused(r.Paused.Value))
	}
	for _, tag := range r.Tags {
		all = append(all, runner.Tagged(tag))
	}
	return all
}

// page lists the runners that match the filters and further conditions.
func (f *Family) page(ctx context.Context, r *filters, more ...runner.Condition) (endpoint.List[Runner], error) {
	of := append(f.conditions(r), more...)
	return endpoint.Counted(ctx, r.Paging, endpoint.Source[runner.Runner]{
		Rows: func(ctx context.Context, skip, most int) ([]runner.Runner, error) {
			return f.Activity.Runners.List(ctx, of, skip, most)
		},
		Count: func(ctx context.Context, most int) (int, error) { return f.Activity.Runners.Count(ctx, of, most) },
	}, f.show)
}

func (f *Family) listAll(ctx context.Context, _ auth.Instance, r *filters) (endpoint.List[Runner], error) {
	return f.page(ctx, r)
}

func (f *Family) listOfProject(ctx context.Context, s auth.Project, r *filters) (endpoint.List[Runner], error) {
	return f.page(ctx, r, database.Or(runner.In(append(groupsOf(s.Scope), s.Scope.Project.UID)...), runner.Of(runner.OfInstance)))
}

func (f *Family) listOfGroup(ctx context.Context, s auth.Group, r *filters) (endpoint.List[Runner], error) {
	return f.page(ctx, r, database.Or(runner.In(groupsOf(s.Scope)...), runner.Of(runner.OfInstance)))
}

// groupsOf returns the UIDs of the groups of a scope.
func groupsOf(s catalog.Scope) []types.UID {
	all := make([]types.UID, len(s.Groups))
	for i, g := range s.Groups {
		all[i] = g.UID
	}
	return all
}

func (f *Family) list(ctx context.Context, s auth.Instance, r *filters) (endpoint.List[Runner], error) {
	places, err := f.places(ctx, s.Subject)
	if err != nil {
		return endpoint.List[Runner]{}, err
	}
	return f.page(ctx, r, runner.In(places...))
}

// places returns the UIDs of the projects and groups with runners that the caller manages.
func (f *Family) places(ctx context.Context, s auth.Subject) ([]types.UID, error) {
	assigned, err := f.Activity.Runners.Assigned(ctx)
	if err != nil {
		return nil, err
	}
	view := s.Caller.View(f.Catalog, f.Clock.Now())
	projects, err := view.Projects(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := view.Groups(ctx)
	if err != nil {
		return nil, err
	}
	managed := sets.Set[types.UID]{}
	for _, p := range projects {
		if s.Has(auth.AccessOf(s.Caller, p), auth.AdminRunners) {
			managed.Insert(p.Project.UID)
		}
	}
	for _, g := range groups {
		if s.Has(auth.AccessOf(s.Caller, g), auth.AdminGroupRunners) {
			managed.Insert(g.Groups[0].UID)
		}
	}
	return slices.DeleteFunc(assigned, func(uid types.UID) bool { return !managed.Has(uid) }), nil
}
