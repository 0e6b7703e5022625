// Package codeowners reads CODEOWNERS files, which say who must approve changes to which paths.
//
// A file has lines of a pattern and its owners, optionally in sections. In each section the last pattern that matches a
// path decides, and each section that owns a path asks for an approval of its own, unless it is optional:
//
//	*.go         @team
//	/docs/       @writers docs@example.com
//	!/docs/auto/
//
//	[Database][2] @dba
//	/schema/
//
//	^[Style]
//	*.css        @design
//
// A pattern without a leading slash matches at any depth; a pattern with a trailing slash matches everything below;
// "*" stays within a directory, "**" spans several. A backslash makes the character after it an ordinary one: a space, a "#".
package codeowners

import (
	"errors"
	"fmt"
	"strings"

	// doublestar knows "**", character classes and escapes, which path.Match knows only in part.
	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a file, so that checking a push stays cheap.
const (
	// MaxSize is in bytes.
	MaxSize = 1 << 20
	// MaxEntries counts the lines that hold a pattern.
	MaxEntries = 10_000
)

// ErrTooLarge is returned by Parse for a file beyond a limit.
var ErrTooLarge = errors.New("the CODEOWNERS file is too large")

// Locations are the paths where the file is looked for. The first that exists counts.
var Locations = []string{"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"}

// File is a parsed CODEOWNERS file.
type File struct {
	// Sections are in order of appearance. The first has no name and holds the entries before any heading.
	Sections []Section
	// Problems are lines that have no effect, or not the one that their author will have meant.
	Problems []Problem
}

// Section is a group of entries. Headings with the same name, in any case, make one section.
type Section struct {
	Name string
	// Optional sections name owners and require nothing of them. A name with several headings is optional if all are.
	Optional bool
	// Approvals is the number of owners that must approve: at least 1, and without meaning in optional sections.
	Approvals int
	Entries   []Entry
}

// Entry is one line with a pattern.
type Entry struct {
	Line    int
	Pattern string
	// Exclude is true for a pattern after "!": what it matches is not owned in this section, whatever other lines say.
	Exclude bool
	// Owners are "@name", "@group/subgroup", "@@role" and e-mail addresses. Without any, the matching files have no owner.
	Owners []string

	glob string
}

// Problem is a remark about a line.
type Problem struct {
	Line int
	Text string
}

// Owned has the owners of a path in one section.
type Owned struct {
	Section *Section
	Entry   *Entry
}

// Owners returns the entry that owns a path, for each section in which there is one. The path is relative to the root of
// the repository.
func (f *File) Owners(path string) []Owned {
	var all []Owned
	for i := range f.Sections {
		if e := f.Sections[i].owner(path); e != nil {
			all = append(all, Owned{Section: &f.Sections[i], Entry: e})
		}
	}
	return all
}

// ApprovalRequired reports whether a change of path needs the approval of a code owner.
func (f *File) ApprovalRequired(path string) bool {
	for i := range f.Sections {
		if s := &f.Sections[i]; !s.Optional && s.owner(path) != nil {
			return true
		}
	}
	return false
}

func (s *Section) owner(path string) *Entry {
	var last *Entry
	for i := range s.Entries {
		e := &s.Entries[len(s.Entries)-1-i]
		if last != nil && !e.Exclude || !e.matches(path) {
			continue
		}
		if e.Exclude {
			return nil
		}
		last = e
	}
	if last == nil || len(last.Owners) == 0 {
		return nil
	}
	return last
}

func (e *Entry) matches(path string) bool {
	return doublestar.MatchUnvalidated(e.glob, "/"+path)
}

// glob translates a pattern to what doublestar understands: anchored, and with braces taken literally.
func glob(pattern string) (string, error) {
	if pattern == "*" {
		return "/**/*", nil
	}
	var b strings.Builder
	if !strings.HasPrefix(pattern, "/") {
		b.WriteString("/**/")
	}
	escaped := false
	for _, c := range []byte(pattern) {
		if !escaped && (c == '{' || c == '}') {
			b.WriteByte('\\')
		}
		escaped = c == '\\' && !escaped
		b.WriteByte(c)
	}
	if strings.HasSuffix(pattern, "/") {
		b.WriteString("**/*")
	}
	if g := b.String(); doublestar.ValidatePattern(g) {
		return g, nil
	}
	return "", fmt.Errorf("%q is not a pattern", pattern)
}
