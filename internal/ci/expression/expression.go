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
	// perPattern is the number of steps that the compilation of such a pattern counts as, and perStep the number of bytes whose comparison counts
	// as a step.
	perPattern, perStep = 10_000, 16
)

// Lookup returns the value of a variable, if it is defined. Variables in a raw value are not expanded.
type Lookup func(name string) (value string, raw, ok bool)

// Expression is a parsed condition.
type Expression struct{ root node }

// True reports whether the condition holds. It subtracts the number of steps that the evaluation can take from steps, and makes no further match
// once steps is negative: then the result has no meaning.
func (e *Expression) True(variables Lookup, steps *int) bool {
	return e.root.value(&evaluation{variables, steps}).true()
}

// evaluation is the evaluation of one expression.
type evaluation struct {
	get   Lookup
	steps *int
}

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

type node interface{ value(*evaluation) value }

// literal is a text in quotes, or null.
type literal struct{ is value }

func (l literal) value(*evaluation) value { return l.is }

type variable struct{ name string }

func (v variable) value(on *evaluation) value {
	text, _, ok := on.get(v.name)
	*on.steps -= 1 + len(text)/perStep
	return value{text, ok}
}

// both and either are && and ||. They have the value of the deciding side.
type (
	both   struct{ left, right node }
	either struct{ left, right node }
)

func (b both) value(on *evaluation) value {
	if left := b.left.value(on); !left.true() {
		return left
	}
	return b.right.value(on)
}

func (e either) value(on *evaluation) value {
	if left := e.left.value(on); left.true() {
		return left
	}
	return e.right.value(on)
}

// equal is == and !=.
type equal struct {
	left, right node
	not         bool
}

func (e equal) value(on *evaluation) value {
	return truth((e.left.value(on) == e.right.value(on)) != e.not)
}

// match is =~ and !~. Without a pattern, right has one as its value.
type match struct {
	left, right node
	pattern     *compiled
	not         bool
}

func (m match) value(on *evaluation) value {
	left := m.left.value(on)
	if !left.set {
		return truth(m.not)
	}
	p := m.pattern
	if p == nil {
		text := m.right.value(on).text
		if *on.steps -= perPattern; *on.steps < 0 || len(text) > maxPattern {
			return value{}
		}
		var err error
		if p, err = compile(text); err != nil {
			return value{} // neither =~ nor !~ holds for an invalid pattern
		}
	}
	if *on.steps -= p.size * len(left.text); *on.steps < 0 {
		return value{}
	}
	return truth(p.MatchString(left.text) != m.not)
}

// compiled is a pattern with the maximum number of steps that it takes for a byte of a text.
type compiled struct {
	*regexp.Regexp
	size int
}

// ErrPattern says that a text is not a pattern.
var ErrPattern = errors.New("a pattern must be between slashes, as in /^release-/")

// Pattern compiles a pattern between slashes, with flags behind the last one: i for any case, m, s and U as in RE2.
func Pattern(text string) (*regexp.Regexp, error) {
	c, err := compile(text)
	if err != nil {
		return nil, err
	}
	return c.Regexp, nil
}

func compile(text string) (*compiled, error) {
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
	re, err := pattern.Compile(inner)
	if err != nil {
		return nil, err
	}
	return &compiled{re, pattern.Size(inner)}, nil
}
