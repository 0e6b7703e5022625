package changelog

import (
	"regexp"
	"strings"
)

// heading is the beginning of a section: two # and what begins with a version, as in "## 1.2.3: Better" and "## v1.2.3, in May".
var heading = regexp.MustCompile(`(?m)^##[ \t]+(v?\d+\.\d+\.\d+[0-9A-Za-z.+-]{0,200})`)

// Insert puts a section into a changelog: before the first section of a lower version, or else at the end. It reports false
// for a changelog that has a section of the version, and returns it as it is.
func (s Section) Insert(changelog string) (string, bool) {
	before := -1
	for _, at := range heading.FindAllStringSubmatchIndex(changelog, -1) {
		switch v, ok := begins(changelog[at[2]:at[3]]); {
		case !ok:
		case v == s.Version:
			return changelog, false
		case before < 0 && v.less(s.Version):
			before = at[0]
		}
	}
	if before >= 0 {
		return changelog[:before] + s.Text + "\n" + changelog[before:], true
	}
	return changelog + blankLine(changelog) + s.Text, true
}

// begins returns the longest version that a text begins with.
func begins(text string) (v Version, ok bool) {
	for ; text != "" && !ok; text = text[:len(text)-1] {
		v, ok = ParseVersion(text)
	}
	return v, ok
}

// blankLine returns the line breaks that a text needs to end with a blank line.
func blankLine(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case text == "", strings.HasSuffix(text, "\n\n"):
		return ""
	case strings.HasSuffix(text, "\n"):
		return "\n"
	default:
		return "\n\n"
	}
}
