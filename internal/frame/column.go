package frame

import (
	"fmt"
	"strings"
)

// columnWidth keeps a column of kubectl readable.
const columnWidth = 250

// Column joins texts for a column of kubectl: as many as fit, with the number of the others.
func Column(texts []string) string {
	for shown := len(texts); shown > 1; shown-- {
		if text := joined(texts, shown); len(text) <= columnWidth {
			return text
		}
	}
	return cut(joined(texts, min(len(texts), 1)))
}

func joined(texts []string, shown int) string {
	text := strings.Join(texts[:shown], ", ")
	if more := len(texts) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
