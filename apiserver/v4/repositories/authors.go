package repositories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/changelog"
	"github.com/forgeplane/forgeplane/internal/role"
)

// MergeRequests finds the merge requests of commits.
type MergeRequests interface {
	// Brought returns the iid of the first merged merge request of each commit, by the ids of the commits. It omits commits without a merge
	// request.
	Brought(ctx context.Context, project int64, commits []string) (map[string]int64, error)
}

// NoMergeRequests is a MergeRequests for projects without merge requests.
type NoMergeRequests struct{}

// Brought implements MergeRequests.
func (NoMergeRequests) Brought(context.Context, int64, []string) (map[string]int64, error) {
	return nil, nil
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
