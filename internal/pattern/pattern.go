// Package pattern compiles regular expressions that callers choose. Their size is limited, so that nobody can take the processor for long.
package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxSize is the maximum size of an expression: about the number of characters with all repetitions written out. A match takes some
// milliseconds at most for a name of a hundred characters.
const maxSize = 2500

// ErrTooLarge says that an expression is too large.
var ErrTooLarge = fmt.Errorf("it is too large: with its repetitions written out, it must have at most about %d characters", maxSize)

// ErrFullName says that an expression for names of branches matches only full names of refs.
var ErrFullName = errors.New("is matched against names without refs/heads/: write ^release/, not ^refs/heads/release/")

// Compile compiles an expression in RE2 syntax. The error is ErrTooLarge, or a syntax.Error.
func Compile(expression string) (*regexp.Regexp, error) {
	if _, err := parse(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(expression)
}

// Whole is Compile for an expression that matches whole texts only.
func Whole(expression string) (*regexp.Regexp, error) {
	parsed, err := parse(expression)
	if err != nil {
		return nil, err
	}
	// The expression as it was written could reach beyond its end, as in `\Qa`.
	return regexp.Compile(`\A(?:` + parsed.String() + `)\z`)
}

// Branches is Compile for an expression for names of branches, such as main. The error can also be ErrFullName.
func Branches(expression string) (*regexp.Regexp, error) {
	parsed, err := parse(expression)
	if err != nil {
		return nil, err
	}
	if strings.Contains(expression, "refs/heads/") || beginsWithRefs(parsed) {
		return nil, ErrFullName
	}
	return regexp.Compile(expression)
}

// beginsWithRefs reports whether every text that an expression matches begins with refs/.
func beginsWithRefs(e *syntax.Regexp) bool {
	parts := sequence(e)
	return len(parts) > 1 && parts[0].Op == syntax.OpBeginText && parts[1].Op == syntax.OpLiteral && parts[1].Flags&syntax.FoldCase == 0 &&
		strings.HasPrefix(string(parts[1].Rune), "refs/")
}

// sequence returns the parts of an expression that follow each other.
func sequence(e *syntax.Regexp) (parts []*syntax.Regexp) {
	if e.Op != syntax.OpConcat && e.Op != syntax.OpCapture {
		return []*syntax.Regexp{e}
	}
	for _, part := range e.Sub {
		parts = append(parts, sequence(part)...)
	}
	return parts
}

func parse(expression string) (*syntax.Regexp, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err == nil && size(parsed) > maxSize {
		err = ErrTooLarge
	}
	return parsed, err
}

// size returns about how many instructions an expression becomes. The parser limits the repetitions, so the number does not overflow.
func size(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	for _, part := range e.Sub {
		n += size(part)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min, e.Max, 1)
	}
	return n
}
