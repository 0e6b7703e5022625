package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/changelog"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/role"
)

// mergeRequests finds the merge requests of commits; see mergerequest.Store.
type mergeRequests interface {
	MergedWith(ctx context.Context, project types.UID, commits []string) ([]mergerequest.Commits, error)
}

// brought returns the iid of the merge request that was the first to bring each commit of a graph, by the ids of the commits. It omits commits without one.
func (f *Family) brought(ctx context.Context, project types.UID, g *history.Graph) (map[string]int64, error) {
	merged, err := f.mergeRequests.MergedWith(ctx, project, g.IDs())
	if err != nil {
		return nil, fmt.Errorf("finding the merge requests of commits: %w", err)
	}
	iids := map[string]int64{}
	for _, m := range merged {
		note := func(id string) {
			if iids[id] == 0 {
				iids[id] = m.IID
			}
		}
		note(m.Merge)
		note(m.Squash)
		g.Between(m.Base, m.Head, note)
	}
	return iids, nil
}

// authors finds the authors of commits, each once.
type authors struct {
	catalog *catalog.Catalog
	project catalog.Scope
	// groups are the groups whose members are always credited.
	groups []catalog.Scope
	now    time.Time
	known  map[string]*changelog.Author
}

// authors returns the authors of a project. groups are full paths. Groups that the caller cannot see are ignored.
func (f *Family) authors(ctx context.Context, s auth.Project, groups []string) (*authors, error) {
	a := &authors{catalog: f.Catalog, project: s.Scope, now: f.Clock.Now(), known: map[string]*changelog.Author{}}
	for _, path := range groups {
		group, err := f.Guard.Group(ctx, path)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding the group %.300q: %w", path, err)
		}
		access, err := f.Guard.Access(ctx, s.Caller, group)
		if err != nil {
			return nil, err
		}
		if s.Has(access, auth.ReadGroup) {
			a.groups = append(a.groups, group)
		}
	}
	return a, nil
}

// of returns the author with an email address, or nil.
func (a *authors) of(ctx context.Context, email string) (*changelog.Author, error) {
	email = strings.ToLower(email)
	if known, ok := a.known[email]; ok {
		return known, nil
	}
	found, err := a.find(ctx, email)
	if err != nil {
		return nil, fmt.Errorf("finding the author of commits: %w", err)
	}
	a.known[email] = found
	return found, nil
}

func (a *authors) find(ctx context.Context, email string) (*changelog.Author, error) {
	if email == "" {
		return nil, nil
	}
	user, err := a.catalog.UserByEmail(ctx, email)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in := func(s catalog.Scope) (bool, error) {
		r, err := a.catalog.RolesIn(ctx, user, s, a.now)
		return r.Highest() > role.None, err
	}
	member, err := in(a.project)
	if err != nil {
		return nil, err
	}
	found := &changelog.Author{Reference: "@" + user.Spec.Username, Contributor: !member, Credit: !member}
	for _, g := range a.groups {
		if found.Credit {
			break
		}
		if found.Credit, err = in(g); err != nil {
			return nil, err
		}
	}
	return found, nil
}
