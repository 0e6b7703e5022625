package repositories

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/auth"
	"github.com/forgeplane/forgeplane/apiserver/endpoint"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/snapshot"
)

// Entry is "Tree entry" of the core interface document.
type Entry struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type" doc:"tree, blob, or commit for a submodule."`
	Path string `json:"path" doc:"From the root of the repository."`
	Mode string `json:"mode" doc:"Six octal digits."`
}

func showEntry(e object.TreeEntry) Entry {
	return Entry{ID: e.ID, Name: e.Name(), Type: e.Type, Path: e.Path, Mode: e.Mode}
}

type treeRequest struct {
	endpoint.Paging
	Path       string `param:"path" doc:"The directory; the root of the repository if it is not given."`
	Ref        string `param:"ref" doc:"A branch, tag or commit; the default branch if it is not given."`
	Recursive  bool   `param:"recursive" default:"false" doc:"Whether to list everything below the directory."`
	Pagination string `param:"pagination" values:"legacy,keyset,none" default:"legacy" doc:"legacy for pages by number, keyset for pages by page_token, none for all entries at once, which requires recursive."`
	PageToken  string `param:"page_token" doc:"Token from the link to the next page, or the id of the last entry of the previous page."`
}

func (f *Family) tree(ctx context.Context, s auth.Project, r *treeRequest) (none endpoint.List[Entry], err error) {
	if r.Pagination == "none" && !r.Recursive {
		return none, endpoint.Parameters(`pagination cannot be "none" unless "recursive" is true`)
	}
	repo, commit, err := f.commit(ctx, s, r.Ref)
	if err != nil {
		return none, orNotFound(err, endpoint.NotFound("Tree"))
	}
	if r.Pagination == "keyset" {
		_, size := r.Window()
		list := func(match func(object.TreeEntry) bool) ([]object.TreeEntry, error) {
			if r.Recursive {
				return snapshot.FirstBelow(ctx, repo, commit, r.Path, match, size+1)
			}
			return snapshot.Tree(ctx, repo, commit, r.Path, false)
		}
		past, err := after(r.PageToken, list)
		if err != nil {
			return none, unlisted(err, r.Recursive)
		}
		entries, err := list(past)
		return endpoint.Keyset(r.Paging, entries, past, token, showEntry).From("page_token"), unlisted(err, r.Recursive)
	}
	entries, err := snapshot.Tree(ctx, repo, commit, r.Path, r.Recursive)
	if err != nil {
		return none, unlisted(err, r.Recursive)
	}
	if r.Pagination == "none" {
		return endpoint.Whole(entries, showEntry), nil
	}
	return endpoint.Page(r.Paging, entries, showEntry), nil
}

// unlisted returns the response for a directory that cannot be listed.
func unlisted(err error, recursive bool) error {
	switch {
	case errors.Is(err, git.ErrFileTooLarge), errors.Is(err, git.ErrOutputTooLarge) && !recursive:
		return endpoint.Message(http.StatusUnprocessableEntity, "The directory is too large to be listed")
	case errors.Is(err, git.ErrOutputTooLarge):
		return endpoint.Message(http.StatusUnprocessableEntity, "There is too much below the directory. List its directories one by one")
	}
	return orNotFound(err, endpoint.NotFound("invalid revision or path"))
}

// tokenPrefix begins a page token that names an entry by type and path, to distinguish it from an object id. An id can occur more than once
// below a directory.
const tokenPrefix = "p."

func token(e object.TreeEntry) string {
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(e.Type+":"+e.Path))
}

// after returns a predicate for the entries behind the one that the page token names, or nil without a token. That entry need not exist any
// more. list returns the entries of the directory, or at least the first that match.
func after(text string, list func(match func(object.TreeEntry) bool) ([]object.TreeEntry, error)) (func(object.TreeEntry) bool, error) {
	var last object.TreeEntry
	named, ours := strings.CutPrefix(text, tokenPrefix)
	switch {
	case text == "":
		return nil, nil
	case ours:
		decoded, err := base64.RawURLEncoding.DecodeString(named)
		kind, path, ok := strings.Cut(string(decoded), ":")
		if err != nil || !ok || !slices.Contains([]string{"tree", "blob", "commit"}, kind) {
			return nil, endpoint.Parameters("page_token is invalid")
		}
		last = object.TreeEntry{Type: kind, Path: path}
	default:
		same := func(e object.TreeEntry) bool { return e.ID == text }
		entries, err := list(same)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(entries, same)
		if i < 0 {
			return nil, endpoint.Parameters("page_token is invalid")
		}
		last = entries[i]
	}
	return func(e object.TreeEntry) bool { return e.Compare(last) > 0 }, nil
}
