package changelog

import (
	"errors"
	"strings"
	"testing"
)

// FuzzTemplate looks for templates with which the parser or the renderer returns an error that is not an Error, and for tags that remain in
// the result.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		defaultTemplate, "", "{{", "{%", "{% if", "{% end %}", "{% if a %}{% else %}{% end %}", "{% each categories %}{{ it.title }}\\\n{% end %}",
		"{% each categories %}{% each entries %}{{ commit.trailers.Changelog }}{% end %}{% end %}", "{{ categories.0.entries.-1 }}", "\\\r\n{{ a }}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, err := shown(t, source)
		if is := Error(""); err != nil && !errors.As(err, &is) {
			t.Fatalf("%q: %v", source, err)
		}
		if err == nil && !strings.Contains(source, "{") && got != strings.NewReplacer("\\\r\n", "", "\\\n", "").Replace(source) {
			t.Errorf("%q becomes %q", source, got)
		}
	})
}

// FuzzConfig looks for configurations that lead to an error that is not an Error.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"categories: {a: b}", "categories: *a", "a: &a [*a]", "template: |\n  {% if a %}\n", "tag_regex: '('", "? a\n: b", "<<: {template: a}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := ParseConfig(content)
		if is := Error(""); err != nil && !errors.As(err, &is) {
			t.Fatalf("%q: %v", content, err)
		}
		if err != nil {
			return
		}
		s, err := Release{Version: "1.0.0", Date: day, Config: c, Entries: some}.Section()
		if err == nil && !strings.HasPrefix(s.Text, "## 1.0.0 (") {
			t.Errorf("%q makes %q", content, s.Text)
		}
	})
}

// FuzzInsert looks for changelogs that lose text when a section is inserted, and for changelogs that get the section twice.
func FuzzInsert(f *testing.F) {
	for _, seed := range []string{"", "# Log\n\n## 1.0.0\n\na", "## 2.0.0\r\n\r\n## 1.0.0\r\n", "## 1.1.0", "##\t1.1.0 x", "\n## v1.0.0-rc.1+x\n## 0.1.0"} {
		f.Add(seed, "1.1.0", "- a\n")
		f.Add(seed, "v1.0.0-rc.1", "## 1.0.0\n")
	}
	f.Fuzz(func(t *testing.T, before, version, body string) {
		v, ok := ParseVersion(version)
		if !ok {
			return
		}
		s := Section{v, "## " + version + " (today)\n\n" + strings.TrimSpace(body) + "\n"}
		after, changed := s.Insert(before)
		if !changed {
			if after != before {
				t.Errorf("%q becomes %q", before, after)
			}
			return
		}
		at := strings.Index(after, s.Text)
		if at < 0 {
			t.Fatalf("%q misses the section", after)
		}
		front, end := 0, 0
		for front < len(before) && before[front] == after[front] {
			front++
		}
		for end < len(before) && before[len(before)-1-end] == after[len(after)-1-end] {
			end++
		}
		if front+end < len(before) {
			t.Errorf("%q is not around the section in %q", before, after)
		}
		if again, changed := s.Insert(after); changed || again != after {
			t.Errorf("it is put twice into %q", before)
		}
	})
}
