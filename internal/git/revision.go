package git

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// steps match the end of a revision, which leads from a commit to its parents and ancestors.
var steps = regexp.MustCompile(`^(?:\^\d{0,3}|~\d{0,6}){0,16}$`)

var abbreviated = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// Commit returns the id of the commit that a revision names: a commit id or its beginning, a tag, a branch, HEAD, or one of these followed
// by ^ and ~ with numbers. If a tag and a branch have the same name, the tag is used, as in Git. Other syntax of Git's revisions is not
// supported, because some of it is slow and some of it leads to objects that clients must not see. The error is ErrRefNotFound, also for
// commits that clients cannot see.
func (r *Repository) Commit(ctx context.Context, revision string) (string, error) {
	names := candidates(revision)
	if len(names) == 0 {
		return "", fmt.Errorf("%.100q: %w", revision, ErrRefNotFound)
	}
	found, err := r.Objects(ctx, names...)
	if err != nil {
		return "", fmt.Errorf("looking up revision %.100q: %w", revision, err)
	}
	for _, o := range found {
		if o.ID != "" {
			return o.ID, nil
		}
	}
	return "", fmt.Errorf("%.100q: %w", revision, ErrRefNotFound)
}

// candidates returns the names of the commits that a revision can mean, in order of precedence.
func candidates(revision string) []string {
	base, rest := revision, ""
	if i := strings.IndexAny(revision, "^~"); i >= 0 {
		base, rest = revision[:i], revision[i:]
	}
	if !steps.MatchString(rest) {
		return nil
	}
	var names []string
	add := func(name string) { names = append(names, name+rest+"^{commit}") }
	switch {
	case IsObjectID(base), base == "HEAD":
		add(base)
		return names
	case strings.HasPrefix(base, "refs/heads/"), strings.HasPrefix(base, "refs/tags/"):
		if CheckRefName(base) == nil {
			add(base)
		}
	}
	for _, prefix := range []string{"refs/tags/", "refs/heads/"} {
		if CheckRefName(prefix+base) == nil {
			add(prefix + base)
		}
	}
	if abbreviated.MatchString(base) {
		add(base)
	}
	return names
}
