package mergerequest

import (
	"regexp"
	"slices"
	"strconv"
)

// MaxClosed is the maximum number of issues that a merge request closes.
const MaxClosed = 100

var (
	closing = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)):?\s+(#\d+\b(?:(?:\s*,\s*|\s+and\s+|\s*,\s+and\s+)#\d+\b)*)`)
	number  = regexp.MustCompile(`#(\d+)`)
)

// Closes returns the iids of the issues that a description closes, as in "Closes #1" and "Fixes #2, #3".
func Closes(description string) (iids []int64) {
	for _, phrase := range closing.FindAllStringSubmatch(description, -1) {
		for _, found := range number.FindAllStringSubmatch(phrase[1], -1) {
			iid, err := strconv.ParseInt(found[1], 10, 64)
			if err == nil && !slices.Contains(iids, iid) {
				iids = append(iids, iid)
			}
			if len(iids) == MaxClosed {
				return iids
			}
		}
	}
	return iids
}
