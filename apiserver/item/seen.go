package item

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/apiserver/visible"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/issue"
)

// Seen selects the issues of projects that a caller can see.
type Seen struct {
	issue.Seen
	// Scopes are the projects by their UIDs.
	Scopes map[types.UID]catalog.Scope
}

// Viewer returns the UID of the user who calls; empty without one.
func Viewer(s auth.Subject) types.UID {
	if s.Caller.User == nil {
		return ""
	}
	return s.Caller.User.UID
}

// SeenHere selects the issues of the request's project that the caller can see. The endpoint must ask for auth.ReadConfidential.
func SeenHere(s auth.Subject) Seen {
	uid := s.Scope.Project.UID
	seen := Seen{Seen: issue.Seen{Viewer: Viewer(s), Projects: []types.UID{uid}}, Scopes: map[types.UID]catalog.Scope{uid: s.Scope}}
	if s.Has(s.Access, auth.ReadConfidential) {
		seen.Trusted = seen.Projects
	}
	return seen
}

// SeenIn selects the issues that the caller can see in the projects of a place. The endpoint must ask for auth.ReadIssues and
// auth.ReadConfidential.
func SeenIn(ctx context.Context, projects *visible.Projects, s auth.Subject, in visible.In) (Seen, error) {
	seen := Seen{Seen: issue.Seen{Viewer: Viewer(s)}, Scopes: map[types.UID]catalog.Scope{}}
	all, err := ProjectsIn(ctx, projects, s, in, auth.ReadIssues)
	for _, p := range all {
		uid := p.Project.UID
		seen.Projects, seen.Scopes[uid] = append(seen.Projects, uid), p.Scope
		if s.Has(auth.AccessOf(s.Caller, p), auth.ReadConfidential) {
			seen.Trusted = append(seen.Trusted, uid)
		}
	}
	return seen, err
}

// ProjectsIn returns the projects of a place in which the caller has an ability. The endpoint must ask for it.
func ProjectsIn(ctx context.Context, projects *visible.Projects, s auth.Subject, in visible.In, read endpoint.Ability) (some []catalog.Seen, err error) {
	all, err := projects.Find(ctx, s.Caller, in, everything{})
	for _, p := range all {
		if s.Has(auth.AccessOf(s.Caller, p), read) {
			some = append(some, p)
		}
	}
	return some, err
}

// everything is a visible.Filter for all projects.
type everything struct{}

// Wants implements visible.Filter.
func (everything) Wants() func(catalog.Seen) bool { return func(catalog.Seen) bool { return true } }

// Compare implements visible.Filter.
func (everything) Compare(a, b catalog.Seen) int {
	return strings.Compare(string(a.Project.UID), string(b.Project.UID))
}
