package changelog

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// maxTemplate is the maximum size of a template, in bytes, and maxNesting is the maximum depth of its statements.
	maxTemplate = 32 << 10
	maxNesting  = 32
)

// template is one that was parsed.
type template []node

// The nodes of a template.
type (
	node interface {
		render(r *renderer, in any) error
	}
	text string
	// output writes a value.
	output struct{ value path }
	// choice is {% if value %} then {% else %} otherwise {% end %}.
	choice struct {
		value           path
		then, otherwise template
	}
	// loop is {% each list %} body {% end %}.
	loop struct {
		list path
		body template
	}
	// path leads to a value from the one that a template is about: to a field of it, or to an element by its number.
	path []string
)

// parseTemplate reads a template. The error is an Error that names the line and the column, both from 1.
func parseTemplate(source string) (template, error) {
	if len(source) > maxTemplate {
		return nil, errorf("The template is longer than %d bytes", maxTemplate)
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	all, stop, err := p.block(0)
	if err == nil && stop != nil {
		err = stop.errorf("{%% %s %%} belongs to nothing", stop.words[0])
	}
	return all, err
}

// token is a piece of text, or a tag.
type token struct {
	// kind is "text", "output" for {{ }} and "statement" for {% %}.
	kind string
	text string
	// words are the contents of a tag.
	words        []string
	line, column int
}

func (t token) errorf(format string, args ...any) error {
	return errorf("Invalid template, line %d, column %d: %s", t.line, t.column, fmt.Sprintf(format, args...))
}

// special matches the end of text: a tag, or a line break that is left out.
var special = regexp.MustCompile(`\{\{|\{%|\\\r?\n`)

// lexer walks through a template.
type lexer struct {
	rest         string
	line, column int
	tokens       []token
}

func lex(source string) ([]token, error) {
	l := lexer{rest: source, line: 1, column: 1}
	for l.rest != "" {
		at := special.FindStringIndex(l.rest)
		if at == nil {
			at = []int{len(l.rest), len(l.rest)}
		}
		if at[0] > 0 {
			l.add("text", l.rest[:at[0]])
			l.skip(at[0])
			continue
		}
		if l.rest[0] == '\\' {
			l.skip(at[1])
			continue
		}
		if err := l.tag(); err != nil {
			return nil, err
		}
	}
	return l.tokens, nil
}

func (l *lexer) add(kind, text string) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, line: l.line, column: l.column})
}

// tag reads a tag, which is on one line. A statement takes the line break behind it.
func (l *lexer) tag() error {
	kind, end := "output", "}}"
	if l.rest[1] == '%' {
		kind, end = "statement", "%}"
	}
	l.add(kind, "")
	t := &l.tokens[len(l.tokens)-1]
	line, _, _ := strings.Cut(l.rest, "\n")
	inside, _, ok := strings.Cut(line[2:], end)
	if !ok {
		return t.errorf("there is no %s on this line", end)
	}
	t.words = strings.Fields(inside)
	l.skip(len(inside) + 4)
	if kind == "statement" {
		switch {
		case strings.HasPrefix(l.rest, "\n"):
			l.skip(1)
		case strings.HasPrefix(l.rest, "\r\n"):
			l.skip(2)
		}
	}
	return nil
}

// skip advances by the given number of bytes.
func (l *lexer) skip(bytes int) {
	passed := l.rest[:bytes]
	l.rest = l.rest[bytes:]
	if breaks := strings.Count(passed, "\n"); breaks > 0 {
		l.line += breaks
		l.column = 1
		passed = passed[strings.LastIndex(passed, "\n")+1:]
	}
	l.column += utf8.RuneCountInString(passed)
}

// parser makes nodes of tokens.
type parser struct{ tokens []token }

// block reads nodes up to an {% else %} or {% end %}, which it returns; nil for the end of the template.
func (p *parser) block(depth int) (all template, stop *token, err error) {
	for len(p.tokens) > 0 {
		t := p.tokens[0]
		p.tokens = p.tokens[1:]
		switch {
		case t.kind == "text":
			all = append(all, text(t.text))
		case t.kind == "output":
			var value path
			if value, err = t.path(t.words); err != nil {
				return nil, nil, err
			}
			all = append(all, output{value})
		case len(t.words) == 1 && (t.words[0] == "else" || t.words[0] == "end"):
			return all, &t, nil
		default:
			n, err := p.statement(t, depth+1)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, n)
		}
	}
	return all, nil, nil
}

// statement parses the rest of a statement that begins with a tag.
func (p *parser) statement(t token, depth int) (node, error) {
	if len(t.words) == 0 || t.words[0] != "if" && t.words[0] != "each" {
		return nil, t.errorf("a statement is if, each, else or end")
	}
	if depth > maxNesting {
		return nil, t.errorf("statements are nested deeper than %d", maxNesting)
	}
	value, err := t.path(t.words[1:])
	if err != nil {
		return nil, err
	}
	body, stop, err := p.block(depth)
	if err != nil {
		return nil, err
	}
	var otherwise template
	if stop != nil && stop.words[0] == "else" && t.words[0] == "if" {
		if otherwise, stop, err = p.block(depth); err != nil {
			return nil, err
		}
	}
	switch {
	case stop == nil:
		return nil, t.errorf("{%% %s %%} has no {%% end %%}", t.words[0])
	case stop.words[0] == "else":
		return nil, stop.errorf("{%% else %%} belongs to no {%% if %%}")
	case t.words[0] == "if":
		return choice{value, body, otherwise}, nil
	default:
		return loop{value, body}, nil
	}
}

var pathSyntax = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$`)

// path reads what has to be a single path.
func (t token) path(words []string) (path, error) {
	if len(words) != 1 || !pathSyntax.MatchString(words[0]) {
		return nil, t.errorf("one name of a value is expected, as in title or commit.reference, not %.50q", strings.Join(words, " "))
	}
	p := path(strings.Split(words[0], "."))
	if p[0] == "it" {
		p = p[1:]
	}
	return p, nil
}
