package expression

import (
	"regexp"
	"strings"
)

const (
	// maxExpanded is the maximum size of an expanded text in bytes; what is longer is cut off.
	maxExpanded = 64 << 10
	// maxNested is the maximum depth of variables in values of variables, and maxSteps the maximum number of replaced variables.
	maxNested, maxSteps = 10, 200
)

var reference = regexp.MustCompile(`\$\$|\$(\w+)|\$\{(\w+)\}`)

// Expand replaces $NAME and ${NAME} in a text by the values of variables, and variables in those, too, unless they are raw. Undefined
// variables become empty, and $$ stays. Values that contain each other in a circle are expanded a few times.
func Expand(text string, get Lookup) string {
	return (&expansion{get, maxSteps}).expand(text, maxNested)
}

// expansion counts the variables that it may still replace.
type expansion struct {
	get  Lookup
	left int
}

func (e *expansion) expand(text string, nested int) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var made strings.Builder
	for made.Len() <= maxExpanded && e.left > 0 {
		m := reference.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		made.WriteString(text[:m[0]])
		begin, end, after := max(m[2], m[4]), max(m[3], m[5]), m[1]
		if begin < 0 {
			made.WriteString("$$")
		} else {
			e.left--
			value, raw, _ := e.get(text[begin:end])
			if nested > 0 && !raw {
				value = e.expand(value, nested-1)
			}
			made.WriteString(value)
		}
		text = text[after:]
	}
	made.WriteString(text)
	return made.String()[:min(made.Len(), maxExpanded)]
}
