// Package pattern compiles regular expressions that callers choose. Their size is limited, so that no caller can occupy the processor for
// long.
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
	if strings.Contains(expression, "refs/heads/") {
		return nil, ErrFullName
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if beginsWithRefs(program) {
		return nil, ErrFullName
	}
	return regexp.Compile(expression)
}

// beginsWithRefs reports whether an expression matches names of refs, and only those that begin with refs/. It follows all ways through the
// program at once. A name has one line.
func beginsWithRefs(p *syntax.Prog) bool {
	if len(reachable(p, 0, uint32(p.Start))) > 0 {
		return false // it can match in the middle of a name
	}
	at := reachable(p, syntax.EmptyBeginText|syntax.EmptyBeginLine, uint32(p.Start))
	for _, want := range "refs/" {
		var next []uint32
		for _, i := range at {
			if i.Op != syntax.InstRune1 || i.Rune[0] != want {
				return false
			}
			next = append(next, i.Out)
		}
		at = reachable(p, 0, next...)
	}
	return len(at) > 0
}

// reachable returns the instructions that match or read a character, and that a program reaches from others without reading one. The
// program is at the beginning of a name only if begin says so; any other condition may be true.
func reachable(p *syntax.Prog, begin syntax.EmptyOp, from ...uint32) (found []*syntax.Inst) {
	seen := make([]bool, len(p.Inst))
	for len(from) > 0 {
		pc := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch i := &p.Inst[pc]; i.Op {
		case syntax.InstFail:
		case syntax.InstAlt, syntax.InstAltMatch:
			from = append(from, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			from = append(from, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&(syntax.EmptyBeginText|syntax.EmptyBeginLine)&^begin == 0 {
				from = append(from, i.Out)
			}
		default:
			found = append(found, i)
		}
	}
	return found
}

func parse(expression string) (*syntax.Regexp, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err == nil && size(parsed) > maxSize {
		err = ErrTooLarge
	}
	return parsed, err
}

// Size returns about how many instructions an expression becomes, which a match can all follow for each character; 0 for an invalid expression.
func Size(expression string) int {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0
	}
	return size(parsed)
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
