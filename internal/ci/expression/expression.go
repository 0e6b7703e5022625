// Package expression evaluates the conditions of CI configurations, as in rules:if.
package expression

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/forgeplane/forgeplane/internal/pattern"
)

const (
	// MaxBytes is the maximum size of an expression.
	MaxBytes = 10_000
	// maxDepth is the maximum depth of parentheses, and maxPattern the maximum size of the value of a variable that is used as a pattern.
	maxDepth, maxPattern = 50, 1 << 10
)

// Lookup returns the value of a variable, if it is defined. Variables in a raw value are not expanded.
type Lookup func(name string) (value string, raw, ok bool)

// Expression is a parsed condition.
type Expression struct{ root node }

// True reports whether the condition holds.
func (e *Expression) True(variables Lookup) bool { return e.root.value(variables).true() }

// value is a text or null.
type value struct {
	text string
	set  bool
}

func (v value) true() bool { return v.set && strings.TrimSpace(v.text) != "" }

func truth(b bool) value {
	if b {
		return value{"true", true}
	}
	return value{}
}

type node interface{ value(Lookup) value }

// literal is a text in quotes, or null.
type literal struct{ is value }

func (l literal) value(Lookup) value { return l.is }

type variable struct{ name string }

func (v variable) value(get Lookup) value {
	text, _, ok := get(v.name)
	return value{text, ok}
}

// both and either are && and ||. They have the value of the deciding side.
type (
	both   struct{ left, right node }
	either struct{ left, right node }
)

func (b both) value(get Lookup) value {
	if left := b.left.value(get); !left.true() {
		return left
	}
	return b.right.value(get)
}

func (e either) value(get Lookup) value {
	if left := e.left.value(get); left.true() {
		return left
	}
	return e.right.value(get)
}

// equal is == and !=.
type equal struct {
	left, right node
	not         bool
}

func (e equal) value(get Lookup) value {
	return truth((e.left.value(get) == e.right.value(get)) != e.not)
}

// match is =~ and !~. Without a pattern, right has one as its value.
type match struct {
	left, right node
	pattern     *regexp.Regexp
	not         bool
}

func (m match) value(get Lookup) value {
	left := m.left.value(get)
	if !left.set {
		return truth(m.not)
	}
	p := m.pattern
	if p == nil {
		text := m.right.value(get).text
		if len(text) > maxPattern {
			return value{}
		}
		var err error
		if p, err = Pattern(text); err != nil {
			return value{} // neither =~ nor !~ holds for an invalid pattern
		}
	}
	return truth(p.MatchString(left.text) != m.not)
}

// ErrPattern says that a text is not a pattern.
var ErrPattern = errors.New("a pattern must be between slashes, as in /^release-/")

// Pattern compiles a pattern between slashes, with flags behind the last one: i for any case, m, s and U as in RE2.
func Pattern(text string) (*regexp.Regexp, error) {
	end := strings.LastIndexByte(text, '/')
	if end < 1 || text[0] != '/' {
		return nil, ErrPattern
	}
	inner, flags := text[1:end], text[end+1:]
	if strings.Trim(flags, "imsU") != "" {
		return nil, fmt.Errorf("the flags of a pattern can be i, m, s and U, not %q", flags)
	}
	if flags != "" {
		inner = "(?" + flags + ")" + inner
	}
	return pattern.Compile(inner)
}
