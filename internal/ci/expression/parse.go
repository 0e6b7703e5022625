package expression

import (
	"fmt"
	"regexp"
	"strings"
)

// maxPatterns is the maximum number of different patterns that a Parser compiles.
const maxPatterns = 250

// errPatterns says that there are too many patterns.
var errPatterns = fmt.Errorf("the configuration has more than %d patterns", maxPatterns)

// Parser parses the conditions of one configuration. It remembers conditions and patterns, because many jobs share them.
type Parser struct {
	parsed   map[string]*Expression
	patterns map[string]*compiled
}

// Parse parses a single condition, as Parser.Parse.
func Parse(text string) (*Expression, error) { return (&Parser{}).Parse(text) }

// Parse parses a condition: comparisons (==, !=, =~, !~) of variables, texts, null and patterns, with &&, || and parentheses. && binds
// stronger than ||.
func (all *Parser) Parse(text string) (*Expression, error) {
	if known := all.parsed[text]; known != nil {
		return known, nil
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the expression is longer than %d bytes", MaxBytes)
	}
	tokens, err := split(text)
	if err != nil {
		return nil, err
	}
	p := &parser{Parser: all, tokens: tokens}
	root, err := p.either(0)
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("%q is not expected there", p.tokens[0].text)
	}
	if err != nil {
		return nil, err
	}
	if all.parsed == nil {
		all.parsed = map[string]*Expression{}
	}
	all.parsed[text] = &Expression{root}
	return all.parsed[text], nil
}

// pattern compiles a pattern.
func (all *Parser) pattern(text string) (*compiled, error) {
	if known := all.patterns[text]; known != nil {
		return known, nil
	}
	if len(all.patterns) >= maxPatterns {
		return nil, errPatterns
	}
	c, err := compile(text)
	if err != nil {
		return nil, fmt.Errorf("the pattern %.100q is invalid: %w", text, err)
	}
	if all.patterns == nil {
		all.patterns = map[string]*compiled{}
	}
	all.patterns[text] = c
	return c, nil
}

type token struct {
	kind kind
	text string
}

type kind int

const (
	operator kind = iota
	name
	quoted
	null
	expression
)

// lexemes are the tokens, in the order in which they are tried. A slash begins a pattern only, so the operators have none.
var lexemes = []struct {
	kind kind
	re   *regexp.Regexp
}{
	{name, regexp.MustCompile(`^\$(\w+)`)},
	{quoted, regexp.MustCompile(`^"([^"]*)"`)},
	{quoted, regexp.MustCompile(`^'([^']*)'`)},
	{expression, regexp.MustCompile(`^(/(?:[^/\\]|\\.)+/[imsU]*)`)},
	{operator, regexp.MustCompile(`^(==|!=|=~|!~|&&|\|\||\(|\))`)},
	{null, regexp.MustCompile(`^(null)\b`)},
}

func split(text string) (tokens []token, err error) {
next:
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		if text == "" {
			return tokens, nil
		}
		for _, l := range lexemes {
			if found := l.re.FindStringSubmatch(text); found != nil {
				tokens = append(tokens, token{l.kind, found[1]})
				text = text[len(found[0]):]
				continue next
			}
		}
		return nil, fmt.Errorf("%.20q is neither a variable such as $NAME, a text in quotes, a /pattern/, null nor an operator", text)
	}
}

type parser struct {
	*Parser
	tokens []token
}

// take takes the next token if it is one of the operators.
func (p *parser) take(operators ...string) (string, bool) {
	if len(p.tokens) > 0 && p.tokens[0].kind == operator {
		for _, o := range operators {
			if p.tokens[0].text == o {
				p.tokens = p.tokens[1:]
				return o, true
			}
		}
	}
	return "", false
}

func (p *parser) either(depth int) (node, error) {
	left, err := p.both(depth)
	for err == nil {
		if _, ok := p.take("||"); !ok {
			return left, nil
		}
		var right node
		right, err = p.both(depth)
		left = either{left, right}
	}
	return nil, err
}

func (p *parser) both(depth int) (node, error) {
	left, err := p.comparison(depth)
	for err == nil {
		if _, ok := p.take("&&"); !ok {
			return left, nil
		}
		var right node
		right, err = p.comparison(depth)
		left = both{left, right}
	}
	return nil, err
}

func (p *parser) comparison(depth int) (node, error) {
	left, err := p.operand(depth)
	if err != nil {
		return nil, err
	}
	o, ok := p.take("==", "!=", "=~", "!~")
	if !ok {
		return left, nil
	}
	if o == "=~" || o == "!~" {
		return p.match(left, o == "!~", depth)
	}
	right, err := p.operand(depth)
	if err != nil {
		return nil, err
	}
	return equal{left, right, o == "!="}, nil
}

// match returns a match with a pattern, or with a variable or a text that has one.
func (p *parser) match(left node, not bool, depth int) (node, error) {
	if len(p.tokens) > 0 && p.tokens[0].kind == expression {
		c, err := p.pattern(p.tokens[0].text)
		if err != nil {
			return nil, err
		}
		p.tokens = p.tokens[1:]
		return match{left: left, pattern: c, not: not}, nil
	}
	right, err := p.operand(depth)
	if err != nil {
		return nil, err
	}
	return match{left: left, right: right, not: not}, nil
}

func (p *parser) operand(depth int) (node, error) {
	if _, ok := p.take("("); ok {
		if depth >= maxDepth {
			return nil, fmt.Errorf("the parentheses are nested more than %d deep", maxDepth)
		}
		inner, err := p.either(depth + 1)
		if _, closed := p.take(")"); err == nil && !closed {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return inner, err
	}
	if len(p.tokens) == 0 {
		return nil, fmt.Errorf("the expression ends where a value is expected")
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	switch t.kind {
	case name:
		return variable{t.text}, nil
	case quoted:
		return literal{value{t.text, true}}, nil
	case null:
		return literal{}, nil
	case expression:
		return nil, fmt.Errorf("the pattern %.100q must be on the right of =~ or !~", t.text)
	default:
		return nil, fmt.Errorf("%q is not expected there", t.text)
	}
}
