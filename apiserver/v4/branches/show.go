package branches

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/ref"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/protection"
	"github.com/forgeplane/forgeplane/internal/role"
)

// Branch is a branch in the REST API.
type Branch struct {
	Name               string         `json:"name"`
	Commit             *commit.Commit `json:"commit" doc:"The newest one."`
	Merged             bool           `json:"merged" doc:"Whether it is part of the default branch."`
	Protected          bool           `json:"protected"`
	DevelopersCanPush  bool           `json:"developers_can_push" doc:"Whether a protection lets Developers push."`
	DevelopersCanMerge bool           `json:"developers_can_merge" doc:"Whether a protection lets Developers merge."`
	CanPush            bool           `json:"can_push" doc:"Whether the caller may push to it."`
	Default            bool           `json:"default"`
	WebURL             string         `json:"web_url"`
}

func (f *Family) showOne(ctx context.Context, s auth.Project, repo *git.Repository, b refs.Ref) (Branch, error) {
	all, err := f.show(ctx, s, repo, []refs.Ref{b})
	if err != nil {
		return Branch{}, err
	}
	return all[0], nil
}

// show returns branches in the form of the REST API.
func (f *Family) show(ctx context.Context, s auth.Project, repo *git.Repository, all []refs.Ref) ([]Branch, error) {
	if len(all) == 0 {
		return []Branch{}, nil
	}
	head, err := refs.ReadHead(ctx, repo)
	if err != nil {
		return nil, err
	}
	var merged map[string]bool
	if head.Commit != "" {
		commits := make([]string, len(all))
		for i, b := range all {
			commits[i] = b.Object
		}
		if merged, err = history.Merged(ctx, repo, head.Commit, commits...); err != nil {
			return nil, err
		}
	}
	rules, err := f.Guard.Rules(ctx, s, names(all))
	if err != nil {
		return nil, err
	}
	actor, projectURL := f.Guard.Actor(s.Subject), f.WebURL+"/"+s.Scope.Path()
	shown := make([]Branch, len(all))
	for i, b := range all {
		name, protections := ref.Name(b), protectionsOf(rules, b)
		shown[i] = Branch{
			Name: name, Default: name == head.Branch, Merged: name != head.Branch && merged[b.Object],
			Protected: protections.any(), WebURL: projectURL + "/-/tree/" + escape(name),
			DevelopersCanPush:  protections.developers(func(r protection.Rule) []protection.Grant { return r.Push }),
			DevelopersCanMerge: protections.developers(func(r protection.Rule) []protection.Grant { return r.Merge }),
		}
		may, err := protection.MayPush(ctx, protections, actor, b.Name)
		if err != nil {
			return nil, err
		}
		shown[i].CanPush = may.Allowed
		if shown[i].Commit, err = ref.Commit(ctx, repo, b.Object, projectURL); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// escape escapes a name for the path of a URL, except for slashes.
func escape(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// names returns the names of branches.
func names(all []refs.Ref) []string {
	short := make([]string, len(all))
	for i, b := range all {
		short[i] = strings.TrimPrefix(b.Name, ref.Branches)
	}
	return short
}

// protections are the rules that match one branch.
type protections []protection.Rule

func protectionsOf(rules []protection.Rule, b refs.Ref) (of protections) {
	for _, r := range rules {
		if protection.Match(r.Name, strings.TrimPrefix(b.Name, ref.Branches)) {
			of = append(of, r)
		}
	}
	return of
}

func (p protections) any() bool { return len(p) > 0 }

// developers reports whether one of the grants is for Developers.
func (p protections) developers(grants func(protection.Rule) []protection.Grant) bool {
	return slices.ContainsFunc(p, func(r protection.Rule) bool {
		return slices.ContainsFunc(grants(r), func(g protection.Grant) bool { return g.Role == role.Developer })
	})
}
