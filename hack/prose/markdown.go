package main

import (
	"regexp"
	"strings"
)

var (
	heading  = regexp.MustCompile(`^#{1,6} `)
	listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.) `)
	ruler    = regexp.MustCompile(`^\s*\|?[\s:|-]+\|?\s*$`)
	cellEnd  = regexp.MustCompile("`[^`]*`|\\|")
)

// readMarkdown reads paragraphs, list items, headings and the cells of tables. Code is left out.
func readMarkdown(_ string, text []byte) ([]*passage, error) {
	var all []*passage
	current := func() *passage { return all[len(all)-1] }
	begin := func(title bool) { all = append(all, &passage{area: docs, title: title}) }
	begin(false)
	fence := ""
	for i, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			begin(false)
		case trimmed == "":
			begin(false)
		case heading.MatchString(line):
			begin(true)
			current().add(i+1, strings.TrimLeft(line, "# "))
			begin(false)
		case strings.HasPrefix(trimmed, "|"):
			for _, cell := range cells(trimmed) {
				begin(true)
				current().add(i+1, cell)
			}
			begin(false)
		case listItem.MatchString(line):
			begin(false)
			current().add(i+1, listItem.ReplaceAllString(line, ""))
		default:
			current().add(i+1, line)
		}
	}
	return finish(all, codeSpans, linkTargets, addresses, quotes), nil
}

// cells splits a row of a table. A bar in a code span separates nothing.
func cells(row string) []string {
	if ruler.MatchString(row) {
		return nil
	}
	return strings.Split(cellEnd.ReplaceAllStringFunc(row, func(s string) string {
		if s == "|" {
			return "\x00"
		}
		return s
	}), "\x00")
}

// finish hides what is not prose, and drops passages without text.
func finish(all []*passage, hidden ...*regexp.Regexp) []*passage {
	var kept []*passage
	for _, p := range all {
		if p.text != "" {
			p.hide(hidden...)
			kept = append(kept, p)
		}
	}
	return kept
}
