package main

import (
	"regexp"
	"sort"
	"strings"
)

// passage is text without breaks: a paragraph, a heading, a cell of a table, a comment, a message.
type passage struct {
	area area
	// title is true for a heading, which need not be a sentence.
	title bool
	// test is the name of the test, if the passage is the name of a test.
	test  string
	text  string
	marks []mark
}

// mark records the line of the text from an offset on.
type mark struct{ offset, line int }

// add appends text of a line. Any number of blanks counts as one.
func (p *passage) add(line int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	if p.text != "" {
		p.text += " "
	}
	p.marks = append(p.marks, mark{len(p.text), line})
	p.text += text
}

// line returns the line of an offset.
func (p *passage) line(offset int) int {
	i := sort.Search(len(p.marks), func(i int) bool { return p.marks[i].offset > offset })
	return p.marks[max(i-1, 0)].line
}

// lines returns the number of lines of the passage.
func (p *passage) lines() int {
	n, last := 0, 0
	for _, m := range p.marks {
		if m.line != last {
			n, last = n+1, m.line
		}
	}
	return n
}

// hide replaces each match by underscores, which match no rule. Offsets stay the same.
func (p *passage) hide(patterns ...*regexp.Regexp) {
	for _, pattern := range patterns {
		p.text = pattern.ReplaceAllStringFunc(p.text, func(s string) string { return strings.Repeat("_", len(s)) })
	}
}

// Text that is not prose.
var (
	codeSpans   = regexp.MustCompile("``.+?``|`[^`]+`")
	quotes      = regexp.MustCompile(`"[^"]*"|“[^”]*”`)
	linkTargets = regexp.MustCompile(`\]\([^)]*\)`)
	addresses   = regexp.MustCompile(`[a-z]+://\S+`)
	identifiers = regexp.MustCompile(`\b[A-Za-z]*[a-z0-9][A-Z]\w*|\b\w+(?:[._/:]+\w+)+\b|\b\w+\(\)|--[a-z-]+`)
	verbs       = regexp.MustCompile(`%[-+ #0-9.\[\]*]*[a-zA-Z]`)
)

// sentence is a part of a passage.
type sentence struct {
	offset int
	text   string
}

// ends matches the end of a sentence and the start of the next one.
var ends = regexp.MustCompile(`[.!?][)\]'*_]*( )[A-Z_*\[(]`)

// sentences splits a passage.
func (p *passage) sentences() []sentence {
	var all []sentence
	begin := 0
	for _, m := range ends.FindAllStringSubmatchIndex(p.text, -1) {
		all = append(all, sentence{begin, p.text[begin:m[2]]})
		begin = m[3]
	}
	return append(all, sentence{begin, p.text[begin:]})
}

// lower returns text with lower-case ASCII letters. Unlike strings.ToLower it keeps every offset.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
