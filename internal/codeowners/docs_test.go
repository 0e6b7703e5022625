package codeowners_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/codeowners"
)

// TestPage_matchesCode compares docs/codeowners.md with what Parse makes of its example.
func TestPage_matchesCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/codeowners.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, rest, _ := strings.Cut(page, "\n```text\n")
	file, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("there is no example")
	}
	f := parse(t, file)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (nobody|.*) \\| (refused|accepted) \\|$").FindAllStringSubmatch(page, -1)
	if len(rows) < 5 {
		t.Errorf("there are %d rows of paths", len(rows))
	}
	for _, row := range rows {
		path, want := row[1], strings.ReplaceAll(row[2], "`", "")
		var names []string
		for _, o := range f.Owners(path) {
			names = append(names, strings.Join(o.Entry.Owners, ", "))
		}
		got := strings.Join(names, ", ")
		if got == "" {
			got = "nobody"
		}
		if got != want || f.ApprovalRequired(path) != (row[3] == "refused") {
			t.Errorf("%s: owned by %s, approval required: %t; the page says %s, %s", path, got, f.ApprovalRequired(path), want, row[3])
		}
	}
	var paths []string
	for _, path := range codeowners.Locations {
		paths = append(paths, "`"+path+"`")
	}
	for _, part := range []string{strings.Join(paths[:len(paths)-1], ", ") + " and " + paths[len(paths)-1],
		fmt.Sprintf("%d MiB", codeowners.MaxSize>>20), fmt.Sprintf("%d,000 patterns", codeowners.MaxEntries/1000)} {
		if !strings.Contains(page, part) {
			t.Errorf("it does not say %s", part)
		}
	}
}
