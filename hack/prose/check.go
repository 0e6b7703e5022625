package main

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// finding is a phrase to rewrite.
type finding struct {
	area    area
	file    string
	line    int
	phrase  string
	instead string
	// gradual is true for a finding of a gradual rule.
	gradual bool
}

// matcher is a rule, ready for use.
type matcher struct {
	rule
	pattern, unless *regexp.Regexp
	// hint is part of every match. Searching for it first saves most of the time.
	hint string
}

var matchers = compile(rules)

func compile(rules []rule) []matcher {
	all := make([]matcher, 0, len(rules))
	for _, r := range rules {
		m := matcher{rule: r, pattern: regexp.MustCompile(r.pattern), hint: hint(r.pattern)}
		if r.unless != "" {
			m.unless = regexp.MustCompile(r.unless)
		}
		all = append(all, m)
	}
	return all
}

// hint returns the longest text that is part of everything that a pattern matches, as far as the pattern shows it.
func hint(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	longest := ""
	for _, part := range parts {
		if part.Op == syntax.OpLiteral && part.Flags&syntax.FoldCase == 0 && len(part.Rune) > len(longest) {
			longest = string(part.Rune)
		}
	}
	return longest
}

// check applies every rule to a passage. Where two rules match the same words, the first one counts.
func check(p *passage) []finding {
	var found []finding
	if f, ok := checkName(p); !ok {
		found = append(found, f)
	}
	for _, s := range p.sentences() {
		text := lower(s.text)
		var taken [][]int
		for i := range matchers {
			m := &matchers[i]
			if m.sentence && (p.title || strings.HasSuffix(text, "?")) || !strings.Contains(text, m.hint) {
				continue
			}
			for _, at := range m.pattern.FindAllStringIndex(text, -1) {
				if overlaps(taken, at) || m.unless != nil && overlaps(m.unless.FindAllStringIndex(text, -1), at) {
					continue
				}
				taken = append(taken, at)
				found = append(found, finding{
					area: p.area, line: p.line(s.offset + at[0]), phrase: strings.TrimSpace(s.text[at[0]:at[1]]), instead: m.instead,
					gradual: m.gradual,
				})
			}
		}
	}
	return found
}

// subjectWords is the largest number of words in the name of a test that has no condition, such as TestParseURL.
const subjectWords = 3

// checkName checks that the name of a test separates its subject from its condition. It reports whether it does.
func checkName(p *passage) (finding, bool) {
	if p.test == "" || strings.Contains(p.test, "_") || strings.Count(p.text, " ") < subjectWords {
		return finding{}, true
	}
	return finding{
		area: p.area, line: p.line(0), phrase: p.test,
		instead: "write TestSubject_condition, such as TestTree_agreesWithGit",
	}, false
}

// overlaps reports whether a span has text in common with one of the others.
func overlaps(spans [][]int, at []int) bool {
	for _, s := range spans {
		if s[0] < at[1] && at[0] < s[1] {
			return true
		}
	}
	return false
}
