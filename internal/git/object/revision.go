package object

import (
	"regexp"
	"strings"
)

// steps match the end of a revision, which leads from a commit to its parents and ancestors.
var steps = regexp.MustCompile(`^(?:\^\d{0,3}|~\d{0,6}){0,16}$`)

var abbreviated = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// Candidates returns the names of the commits that a revision can mean, in order of precedence.
func Candidates(revision string) []string {
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
	case IsID(base), base == "HEAD":
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
