package codeowners_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/codeowners"
)

func parse(t *testing.T, text string) *codeowners.File {
	t.Helper()
	f, err := codeowners.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// owners returns the owners of a path in the form "Section: @a @b; Other: @c".
func owners(f *codeowners.File, path string) string {
	var all []string
	for _, o := range f.Owners(path) {
		all = append(all, strings.TrimPrefix(o.Section.Name+": ", ": ")+strings.Join(o.Entry.Owners, " "))
	}
	return strings.Join(all, "; ")
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, owned, unowned string // paths, separated by spaces
	}{
		{"*", "a a/b .hidden a/.b/c", ""},
		{"*.rb", "a.rb lib/a.rb .rb", "a.rbx rb"},
		{"README.md", "README.md docs/README.md", "readme.md README.md/x"},
		{"/README.md", "README.md", "docs/README.md"},
		{"docs", "docs x/docs", "docs/a"},
		{"lib/", "lib/a lib/a/b x/lib/a", "lib libx/a"},
		{"/config/", "config/a config/a/b", "x/config/a config"},
		{"/docs/*", "docs/a docs/.a", "docs/a/b"},
		{"docs/*", "docs/a x/docs/a", "docs/a/b"},
		{"/docs/**/*.md", "docs/a.md docs/x/y/a.md", "docs/a.txt x/docs/a.md"},
		{"/docs/**", "docs/a docs/a/b", "x/docs/a"},
		{"**/x/*", "x/a a/b/x/c", "x"},
		{"/a?c", "abc", "ac a/c abbc"},
		{"/[ab].go", "a.go b.go", "c.go"},
		{"/[!ab].go", "c.go", "a.go"},
		{"/{a,b}.go", "{a,b}.go", "a.go b.go"},
		{`/\*.go`, "*.go", "a.go"},
		{`\#file`, "#file x/#file", "file"},
		{`\!file`, "!file", "file"},
		{"größe/", "größe/ä", "große/a"},
	} {
		f := parse(t, c.pattern+" @owner\n")
		if len(f.Problems) > 0 {
			t.Errorf("%s: %v", c.pattern, f.Problems)
		}
		for _, path := range strings.Fields(c.owned) {
			if owners(f, path) != "@owner" || !f.ApprovalRequired(path) {
				t.Errorf("%s does not own %s", c.pattern, path)
			}
		}
		for _, path := range strings.Fields(c.unowned) {
			if owners(f, path) != "" || f.ApprovalRequired(path) {
				t.Errorf("%s owns %s", c.pattern, path)
			}
		}
	}
}

func TestSpacesInPaths(t *testing.T) {
	f := parse(t, `/path\ with\ spaces/ @a`+"\n/tab\\\tx\t@b")
	if got := owners(f, "path with spaces/x"); got != "@a" {
		t.Errorf("got %q", got)
	}
	if got := owners(f, "tab\tx"); got != "@b" {
		t.Errorf("got %q", got)
	}
}

const example = `
# A comment, and nothing else.
*               @everybody
*.rb            @ruby ruby@example.com	@group/sub and a remark
/docs/          @@maintainer
/docs/free.md
  /generated/   @everybody
!/generated/x
/generated/x/y  @everybody

[Documentation] @writers
/docs/
README.md       @reader

^[Style][3]     @design
*.css

[Database][2] @dba
/schema/

[documentation]
*.adoc          @other
/orphan

^[database]
/seeds/         @seeds
`

func TestPattern_keepsEscapesOfGlobs(t *testing.T) {
	for line, want := range map[string]string{
		`\#a`:   "#a",
		`\!a`:   "!a",
		`a\#b`:  `a\#b`,
		`a\!b`:  `a\!b`,
		`\*a`:   `\*a`,
		`a\ b`:  "a b",
		"\\\ta": "\ta",
		`!\#a`:  "#a",
	} {
		if got := parse(t, line+" @owner\n").Sections[0].Entries[0].Pattern; got != want {
			t.Errorf("the pattern of %q is %q, want %q", line, got, want)
		}
	}
}

func TestOwners_areWordsWithAnAtBeforeText(t *testing.T) {
	f := parse(t, "* @a team@example.com @ b@ x c@d@\n")
	if got, want := owners(f, "file"), "@a team@example.com c@d@"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSection_needsAtLeastOneApproval(t *testing.T) {
	for heading, want := range map[string]int{"[Docs]": 1, "[Docs][0]": 1, "[Docs][1]": 1, "[Docs][2]": 2} {
		if got := parse(t, heading+"\n* @a\n").Sections[1].Approvals; got != want {
			t.Errorf("%s needs %d approvals, want %d", heading, got, want)
		}
	}
}

func TestSections(t *testing.T) {
	f := parse(t, example)
	for _, c := range []struct {
		path, owners string
		required     bool
	}{
		{"main.go", "@everybody", true},
		{"lib/a.rb", "@ruby ruby@example.com @group/sub", true},
		{"docs/a.md", "@@maintainer; Documentation: @writers", true},
		{"docs/free.md", "Documentation: @writers", true},
		{"README.md", "@everybody; Documentation: @reader", true},
		{"generated/a", "@everybody", true},
		{"generated/x", "", false},
		{"a.adoc", "@everybody; Documentation: @other", true},
		{"a.css", "@everybody; Style: @design", true},
		{"schema/1", "@everybody; Database: @dba", true},
		{"seeds/1", "@everybody; Database: @seeds", true},
	} {
		if got := owners(f, c.path); got != c.owners {
			t.Errorf("%s: got %q, want %q", c.path, got, c.owners)
		}
		if got := f.ApprovalRequired(c.path); got != c.required {
			t.Errorf("%s: approval required: %t", c.path, got)
		}
	}
	for i, want := range []codeowners.Section{
		{Name: "", Approvals: 1}, {Name: "Documentation", Approvals: 1},
		{Name: "Style", Optional: true, Approvals: 3}, {Name: "Database", Approvals: 2},
	} {
		if s := f.Sections[i]; s.Name != want.Name || s.Optional != want.Optional || s.Approvals != want.Approvals {
			t.Errorf("got section %q, optional %t, %d approvals; want %+v", s.Name, s.Optional, s.Approvals, want)
		}
	}
}

func TestApprovalRequired_isFalseForOptionalSections(t *testing.T) {
	f := parse(t, "^[Style] @design\n*.css\n")
	if f.ApprovalRequired("a.css") {
		t.Error("approval is required")
	}
	if owners(f, "a.css") == "" {
		t.Error("the owner is not named")
	}
}

func TestProblems_nameTheirLines(t *testing.T) {
	f := parse(t, "*.go @a\n[Unfinished @b\n/unowned\n/[ @c\n[ ]\n!\n/ok @d\n/words nobody here\n")
	var lines []int
	for _, p := range f.Problems {
		lines = append(lines, p.Line)
	}
	if got, want := len(lines), 6; got < want {
		t.Errorf("got %d problems, at lines %v, want at least %d", got, lines, want)
	}
	if lines[0] != 2 || lines[len(lines)-1] != 8 {
		t.Errorf("got problems at lines %v", lines)
	}
	if got := owners(f, "ok"); got != "@d" {
		t.Errorf("a good line after bad ones: got %q", got)
	}
}

func TestLimits(t *testing.T) {
	for about, text := range map[string]string{
		"size":    strings.Repeat("#", codeowners.MaxSize+1),
		"entries": strings.Repeat("a @b\n", codeowners.MaxEntries+1),
	} {
		if _, err := codeowners.Parse([]byte(text)); !errors.Is(err, codeowners.ErrTooLarge) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if f := parse(t, strings.Repeat("a @b\n", codeowners.MaxEntries)); !f.ApprovalRequired("a") {
		t.Error("a file at the limit must work")
	}
	parse(t, strings.Repeat("#", codeowners.MaxSize))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example), "docs/a.md")
	f.Add([]byte("\\ @a\n[\\]x @b\n^[a][0] @b\n{[}\xff] @c\n**\\ @d"), "}")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		file, err := codeowners.Parse(text)
		if err != nil {
			return
		}
		if file.ApprovalRequired(path) && len(file.Owners(path)) == 0 {
			t.Error("an approval is required and nobody can give it")
		}
	})
}
