package main

import (
	"regexp"
	"strings"
)

var (
	// hash matches a comment of YAML, a shell or make.
	hash = regexp.MustCompile(`(?:^|\s)#+(?:\s+|$)(.*)$`)
	// described matches a key whose value is a text for people, and the value if it is on the same line.
	described = regexp.MustCompile(`^(\s*(?:- )?)"?(?:message|messageExpression|description|note)"?:\s*(.*)$`)
	// member matches a description of a JSON schema.
	member = regexp.MustCompile(`"description"\s*:\s*"((?:[^"\\]|\\.)*)"`)
)

// readYAML returns a function that reads comments, and the values of keys such as message and description.
func readYAML(a area) readFunc {
	return func(_ string, text []byte) ([]*passage, error) {
		var notes, values []*passage
		var note, value *passage
		depth := 0
		for i, line := range strings.Split(string(text), "\n") {
			if value != nil && strings.TrimSpace(line) != "" && indent(line) > depth {
				value.add(i+1, line)
				continue
			}
			value = nil
			if m := described.FindStringSubmatch(line); m != nil && a == configuration {
				depth = len(m[1])
				value = &passage{area: a}
				value.add(i+1, strings.Trim(m[2], `>|-'"`))
				values = append(values, value)
				continue
			}
			m := hash.FindStringSubmatch(line)
			if len(m) < 2 || m[1] == "" || strings.HasPrefix(line, "#!") {
				note = nil
				continue
			}
			if note == nil || strings.TrimSpace(line)[0] != '#' {
				note = &passage{area: a}
				notes = append(notes, note)
			}
			note.add(i+1, m[1])
		}
		return append(finish(notes, codeSpans, addresses, quotes, identifiers), finish(values, codeSpans, addresses, identifiers)...), nil
	}
}

// readSchema reads the descriptions of a JSON schema.
func readSchema(_ string, text []byte) ([]*passage, error) {
	var all []*passage
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range member.FindAllStringSubmatch(line, -1) {
			p := &passage{area: configuration}
			p.add(i+1, m[1])
			all = append(all, p)
		}
	}
	return finish(all, codeSpans, addresses, identifiers), nil
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
