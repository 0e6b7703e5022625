package codeowners

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// heading is "[Name]", "^[Name]" or "[Name][2]", and then default owners.
var heading = regexp.MustCompile(`^(\^)?\[([^\[\]]*[^\[\]\s][^\[\]]*)\](?:\[(\d{1,4})\])?(?:\s+(.*))?$`)

// Parse reads a file. Lines that it cannot make sense of become Problems; the only error is ErrTooLarge.
func Parse(text []byte) (*File, error) {
	if len(text) > MaxSize {
		return nil, ErrTooLarge
	}
	p := parser{file: &File{Sections: []Section{{Approvals: 1}}}}
	entries := 0
	for line := range bytes.Lines(text) {
		p.line++
		if p.parse(strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))) {
			entries++
		}
		if entries > MaxEntries {
			return nil, ErrTooLarge
		}
	}
	return p.file, nil
}

type parser struct {
	file     *File
	line     int
	section  int      // index of the current one
	defaults []string // owners in the current heading
}

// parse reads one line and reports whether it added an entry.
func (p *parser) parse(line string) bool {
	switch {
	case line == "" || line[0] == '#':
		return false
	case line[0] == '[' || strings.HasPrefix(line, "^["):
		if m := heading.FindStringSubmatch(line); m != nil {
			p.startSection(m[2], m[1] != "", m[3], m[4])
			return false
		}
		p.problem("this is not a section heading and is treated as a pattern")
	}
	return p.addEntry(line)
}

func (p *parser) startSection(name string, optional bool, approvals, owners string) {
	name = strings.TrimSpace(name)
	needed := 1
	if n, err := strconv.Atoi(approvals); err == nil && n > 0 {
		needed = n
	}
	p.defaults = p.owners(owners)
	for i := 1; i < len(p.file.Sections); i++ {
		if s := &p.file.Sections[i]; strings.EqualFold(s.Name, name) {
			s.Optional = s.Optional && optional
			s.Approvals = max(s.Approvals, needed)
			p.section = i
			return
		}
	}
	p.section = len(p.file.Sections)
	p.file.Sections = append(p.file.Sections, Section{Name: name, Optional: optional, Approvals: needed})
}

func (p *parser) addEntry(line string) bool {
	exclude := line[0] == '!'
	pattern, rest := cutPattern(strings.TrimPrefix(line, "!"))
	g, err := glob(pattern)
	if pattern == "" || err != nil {
		p.problem("this is not a pattern, and is ignored")
		return false
	}
	e := Entry{Line: p.line, Pattern: pattern, Exclude: exclude, glob: g}
	if !exclude {
		e.Owners = p.owners(rest)
		if strings.TrimSpace(rest) == "" {
			e.Owners = p.defaults
		}
		if len(e.Owners) == 0 {
			p.problem("this pattern has no owners")
		}
	}
	s := &p.file.Sections[p.section]
	s.Entries = append(s.Entries, e)
	return true
}

// cutPattern cuts a line at the first white space without a backslash. It removes backslashes that only escape a space, or a "#" or "!" at
// the beginning.
func cutPattern(line string) (pattern, rest string) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			return b.String(), line[i:]
		case c == '\\' && i+1 < len(line):
			i++
			if next := line[i]; next != ' ' && next != '\t' && (b.Len() > 0 || next != '#' && next != '!') {
				b.WriteByte(c)
			}
			b.WriteByte(line[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// owners returns the words that name owners. Other words are remarks.
func (p *parser) owners(words string) []string {
	var names []string
	for _, w := range strings.Fields(words) {
		if at := strings.IndexByte(w, '@'); at >= 0 && at < len(w)-1 {
			names = append(names, w)
		}
	}
	return names
}

func (p *parser) problem(text string) {
	p.file.Problems = append(p.file.Problems, Problem{Line: p.line, Text: text})
}
