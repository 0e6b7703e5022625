// Package visible finds the projects that callers can see.
package visible

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/store"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// maxAnswers is the maximum number of remembered answers, each of which can have all projects.
const maxAnswers = 64

// Projects finds the projects that callers can see. It remembers its answers until an object changes, because a client that asks for one page
// also asks for the others.
type Projects struct {
	answers *catalog.Memory[question, []catalog.Seen]
	clock   clock.PassiveClock
}

// NewProjects returns the projects of a catalog.
func NewProjects(cat *catalog.Catalog, clk clock.PassiveClock) *Projects {
	return &Projects{clock: clk, answers: catalog.NewMemory[question, []catalog.Seen](
		cat, maxAnswers, &v1alpha1.Project{}, &v1alpha1.Group{}, &v1alpha1.Membership{}, &v1alpha1.User{}, &corev1.Namespace{})}
}

// In limits the projects by their place. The zero value stands for all projects.
type In struct {
	// Group is the group of the projects; nil for any group.
	Group *v1alpha1.Group
	// Below includes the projects of the groups below, and Shared the projects that are shared with the group.
	Below, Shared bool
	// ForkOf is the project whose forks the projects are; nil for any project.
	ForkOf *v1alpha1.Project
}

// Filter selects and orders projects. It must be comparable, and equal filters must have equal results. They cannot depend on the last
// activity of projects.
type Filter interface {
	// Wants returns the function that reports whether a project is selected.
	Wants() func(catalog.Seen) bool
	// Compare orders the projects, as for slices.SortFunc.
	Compare(a, b catalog.Seen) int
}

// question identifies an answer.
type question struct {
	viewer        auth.Viewer
	group, forkOf types.UID
	below, shared bool
	filter        Filter
}

// Find returns the projects that a caller can see. They do not follow pushes: use catalog.Current to read what a push changes. Callers must
// not change the result.
func (p *Projects) Find(ctx context.Context, caller auth.Caller, in In, f Filter) ([]catalog.Seen, error) {
	q := question{viewer: caller.Viewer(), below: in.Below, shared: in.Shared, filter: f}
	if in.Group != nil {
		q.group = in.Group.UID
	}
	if in.ForkOf != nil {
		q.forkOf = in.ForkOf.UID
	}
	now := p.clock.Now()
	return p.answers.Recall(q, now, func(c *catalog.Catalog) (all []catalog.Seen, until time.Time, err error) {
		var shared []types.UID
		if in.Shared {
			if shared, until, err = c.ProjectsSharedWith(ctx, in.Group, now); err != nil {
				return nil, until, err
			}
		}
		tree := caller.View(c, now)
		if all, err = tree.Projects(ctx); err != nil {
			return nil, until, err
		}
		wants := f.Wants()
		all = store.Visible(all, func(s catalog.Seen) bool { return q.in(s, shared) && auth.AccessOf(caller, s).Sees() && wants(s) })
		slices.SortFunc(all, f.Compare)
		if ends := tree.Until(); until.IsZero() || !ends.IsZero() && ends.Before(until) {
			until = ends
		}
		return all, until, nil
	})
}

// in reports whether a project is in the place of the question. shared are the projects that are shared with the group.
func (q question) in(s catalog.Seen, shared []types.UID) bool {
	if q.forkOf != "" {
		if origin, _ := s.Project.Origin(); origin.UID != string(q.forkOf) {
			return false
		}
	}
	if q.group == "" || slices.Contains(shared, s.Project.UID) {
		return true
	}
	at := slices.IndexFunc(s.Groups, func(g *v1alpha1.Group) bool { return g.UID == q.group })
	return at == 0 || at > 0 && q.below
}
