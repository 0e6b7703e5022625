package protection

import "strings"

// Match reports whether the name of a rule covers a branch. Each "*" matches any sequence of characters, including "/" and the empty
// sequence. Every other character matches itself; case matters. The time is linear in the length of the branch.
func Match(name, branch string) bool {
	before, rest, wild := strings.Cut(name, "*")
	if !wild {
		return name == branch
	}
	branch, ok := strings.CutPrefix(branch, before)
	if !ok {
		return false
	}
	// A part between two stars can match at its first occurrence, because that leaves the most text to the other parts.
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(branch, part)
		}
		_, branch, ok = strings.Cut(branch, part)
		if !ok {
			return false
		}
		rest = next
	}
}
