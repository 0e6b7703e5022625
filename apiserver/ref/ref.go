// Package ref has the code that the families of branches, tags, files and other content share: it finds, lists and updates refs.
package ref

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/commit"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/repository"
)

// The prefixes of refs that clients name without the prefix.
const (
	Branches = "refs/heads/"
	Tags     = "refs/tags/"
)

// Name is the name of a branch or tag without its prefix.
func Name(r refs.Ref) string {
	_, name, _ := strings.Cut(strings.TrimPrefix(r.Name, "refs/"), "/")
	return strings.ToValidUTF8(name, "\uFFFD")
}

// IsBranchName reports whether a new branch can have a name. A name in the form of an object id would hide the object, or be hidden by it.
func IsBranchName(name string) bool {
	return name != "HEAD" && !object.IsID(name) && object.CheckRefName(Branches+name) == nil
}

// Missing reports whether an error says that something does not exist: a ref, an object, or a repository that nothing was pushed to yet. A
// lost repository is not missing in this sense, because it must not look like an empty one.
func Missing(err error) bool {
	for _, kind := range []error{refs.ErrNotFound, git.ErrObjectNotFound, repository.ErrNoStorage} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Find returns the ref with a full name in the repository of a project. If only the ref is missing, it returns the repository and
// refs.ErrNotFound. See Missing for the other errors.
func Find(
	ctx context.Context, all *repository.Repositories, p *v1alpha1.Project, name string,
) (repo *git.Repository, found refs.Ref, err error) {
	if repo, err = all.Content(ctx, p); err != nil {
		return nil, found, err
	}
	objects, err := repo.Objects(ctx, name)
	if err == nil && objects[0].ID == "" {
		err = refs.ErrNotFound
	}
	if err != nil {
		return repo, found, err
	}
	return repo, refs.Ref{Name: name, Object: objects[0].ID, Type: objects[0].Type}, nil
}

// Search returns a predicate for the refs whose names contain a text, in any case. The text can begin with ^ to match the beginning of
// names, and end with $ to match their end. The predicate is nil for an empty text, which matches all refs.
func Search(text string) func(refs.Ref) bool {
	if text == "" {
		return nil
	}
	text, first := strings.CutPrefix(strings.ToLower(text), "^")
	text, last := strings.CutSuffix(text, "$")
	return func(r refs.Ref) bool {
		name := strings.ToLower(Name(r))
		switch {
		case first && last:
			return name == text
		case first:
			return strings.HasPrefix(name, text)
		case last:
			return strings.HasSuffix(name, text)
		default:
			return strings.Contains(name, text)
		}
	}
}

// Paging is embedded by the requests for lists of refs.
type Paging struct {
	endpoint.Paging
	Pagination string `param:"pagination" values:"legacy,keyset" default:"legacy" doc:"legacy for pages by number, keyset for pages by page_token."`
	PageToken  string `param:"page_token" doc:"The name that was the last on the page before."`
}

// Page returns the requested page of the refs that match; all refs match if match is nil. If the refs are sorted by name, compare is their
// order, and the ref that the page token names need not exist any more. For any other order, compare is nil.
func Page(p Paging, all []refs.Ref, match func(refs.Ref) bool, compare func(a, b string) int) (none endpoint.List[refs.Ref], err error) {
	if match == nil {
		match = func(refs.Ref) bool { return true }
	}
	same := func(r refs.Ref) refs.Ref { return r }
	skip, size := p.Window()
	if p.Pagination != "keyset" {
		rows, total := cut(all, match, skip, size)
		return endpoint.Cut(rows, total, same), nil
	}
	matched := match
	switch {
	case p.PageToken == "":
	case compare != nil:
		match = func(r refs.Ref) bool { return compare(Name(r), p.PageToken) > 0 && matched(r) }
	default:
		i := slices.IndexFunc(all, func(r refs.Ref) bool { return Name(r) == p.PageToken && matched(r) })
		if i < 0 {
			return none, endpoint.Parameters("page_token is invalid")
		}
		all = all[i+1:]
	}
	rows, _ := cut(all, match, 0, p.Ahead())
	return endpoint.Following(p.Paging, rows, Name, same).From("page_token"), nil
}

// cut returns at most size of the refs that match, after the first skip of them, and the number of all that match. It keeps no other refs,
// because a repository can have very many.
func cut(all []refs.Ref, match func(refs.Ref) bool, skip, size int) (rows []refs.Ref, total int) {
	for _, r := range all {
		if !match(r) {
			continue
		}
		if total >= skip && len(rows) < size {
			rows = append(rows, r)
		}
		total++
	}
	return rows, total
}

// Commit returns the commit with an id, as lists show it; nil if it does not exist.
func Commit(ctx context.Context, repo *git.Repository, id, projectURL string) (*commit.Commit, error) {
	found, err := repo.ReadCommit(ctx, id)
	switch {
	case errors.Is(err, git.ErrObjectNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	shown := commit.Show(found.Listed(), projectURL)
	return &shown, nil
}

// Unmodified returns 412 for a conditional removal if the commit with an id is newer than the date of the condition.
func Unmodified(ctx context.Context, repo *git.Repository, id string) error {
	since := endpoint.UnmodifiedSince(ctx)
	if since.IsZero() {
		return nil
	}
	switch c, err := repo.ReadCommit(ctx, id); {
	case errors.Is(err, git.ErrObjectNotFound):
		return nil
	case err != nil:
		return err
	case c.Author.When.After(since):
		return endpoint.PreconditionFailed()
	}
	return nil
}
