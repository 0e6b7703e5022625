package protection

import "strings"

// Match reports whether the name of a rule covers a branch. Each "*" stands for any run of characters, "/" and the empty
// run included; everything else stands for itself, case included. It takes time linear in the length of the branch.
func Match(name, branch string) bool {
	before, rest, wild := strings.Cut(name, "*")
	if !wild {
		return name == branch
	}
	branch, ok := strings.CutPrefix(branch, before)
	if !ok {
		return false
	}
	// A part that lies between two stars may as well match where it occurs first: that leaves the most to the others.
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
