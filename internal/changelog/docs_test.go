package changelog

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestChangelogPage_matchesCode tries the configurations on the page, and checks that the page shows the defaults and names every key.
func TestChangelogPage_matchesCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/changelog.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, found := range regexp.MustCompile("(?s)\n```([a-z]+)\n(.*?\n)```\n").FindAllStringSubmatch(string(page), -1) {
		blocks[found[1]] = append(blocks[found[1]], found[2])
	}
	var sections strings.Builder
	tagged := false
	for _, text := range blocks["yml"] {
		config := configOf(t, text)
		if _, found := config.Previous("v1.3.0", slices.Values([]string{"release-1-2-3"})); found {
			tagged = true
		}
		s, err := Release{Version: "1.0.0", Date: day, Config: config, Entries: some[1:3]}.Section()
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		sections.WriteString(s.Text)
	}
	for _, want := range []string{"## 1.0.0 (15 June 2026)\n\n### New (1 change)\n", "\n\n- Third\n- Second\n"} {
		if !strings.Contains(sections.String(), want) {
			t.Errorf("no configuration makes %q:\n%s", want, sections.String())
		}
	}
	if !tagged {
		t.Error("no configuration knows the tag release-1-2-3")
	}
	for what, text := range map[string]string{"template": defaultTemplate, "tag_regex": defaultTags + "\n"} {
		if !strings.Contains(string(page), "\n```text\n"+text+"```\n") {
			t.Errorf("it shows another %s", what)
		}
	}
	for _, key := range []string{"date_format", "template", "tag_regex", "include_groups", "categories"} {
		if !strings.Contains(string(page), "\n| `"+key+"` | ") {
			t.Errorf("it says nothing of %s", key)
		}
	}
}
