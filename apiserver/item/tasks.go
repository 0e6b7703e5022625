package item

import (
	"regexp"
	"strings"
)

// Tasks counts the checkboxes in a description: all of them, and the checked ones.
type Tasks struct {
	Count     int64 `json:"count"`
	Completed int64 `json:"completed_count"`
}

var (
	checkbox = regexp.MustCompile(`^[\t >]*(?:[-*+]|\d{1,9}[.)])[\t ]+\[([ xX])\][\t ]`)
	fence    = regexp.MustCompile("^[\t >]*(`{3,}|~{3,})")
)

// CountTasks counts the checkboxes of a description, except for those in blocks of code.
func CountTasks(description string) (t Tasks) {
	var open string
	for line := range strings.Lines(description) {
		if f := fence.FindStringSubmatch(line); f != nil {
			switch {
			case open == "":
				open = f[1]
			case strings.HasPrefix(f[1], open):
				open = ""
			}
			continue
		}
		box := checkbox.FindStringSubmatch(line)
		if box == nil || open != "" {
			continue
		}
		t.Count++
		if box[1] != " " {
			t.Completed++
		}
	}
	return t
}
