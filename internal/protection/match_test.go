package protection_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/internal/protection"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name, branch string
		want         bool
	}{
		{"main", "main", true},
		{"main", "Main", false},
		{"main", "main2", false},
		{"main", "feature/main", false},
		{"", "", true},
		{"", "main", false},
		{"*", "main", true},
		{"*", "a/b/c", true},
		{"*", "", true},
		{"release/*", "release/1.0", true},
		{"release/*", "release/1.0/rc", true},
		{"release/*", "release/", true},
		{"release/*", "release", false},
		{"release/*", "prerelease/1.0", false},
		{"*-stable", "16-5-stable", true},
		{"*-stable", "-stable", true},
		{"*-stable", "16-5-stable-ee", false},
		{"*-stable", "stable", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a**a", "aba", true},
		{"*gitlab*", "some/gitlab/branch", true},
		{"a*b*c", "aXbXbXc", true},
		{"a*b*c", "acb", false},
		{"*ab*ab", "ab", false},
		{"*ab*ab", "abab", true},
		{"v[0-9].?", "v[0-9].?", true},
		{"v[0-9].?", "v1.x", false},
		{"größe/*", "größe/ä", true},
	} {
		if got := protection.Match(c.name, c.branch); got != c.want {
			t.Errorf("Match(%q, %q) = %t", c.name, c.branch, got)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"main": "", "*": "", "**": "", "release/*": "", "*/release/*.x": "", "*lock": "", "a.*x": "",
		"refs/heads/prod": "write prod, not refs/heads/prod", "release/.*": "not a regular expression", "a*..": `".."`, "*/": `an extra "/"`,
		"*.lock": `".lock"`, "*.": `ends with "."`, "*//*": `an extra "/"`, "*@{*": `"@{"`,
	} {
		if err := protection.CheckName(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckName(%q) = %v, want %q", name, err, want)
		}
	}
}

func TestMatch_takesLinearTime(t *testing.T) {
	name, branch := strings.Repeat("a*", 10_000)+"b", strings.Repeat("a", 1_000_000)
	// A backtracking matcher would need days.
	if protection.Match(name, branch) {
		t.Error("matched without the b")
	}
}

// FuzzMatch compares Match with a regular expression made of quoted parts.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"release/*", "release/1"}, {"*-stable", "1-stable"}, {"a*b*a", "aba"}, {"**", ""}, {"*\n*", "a\nb"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, name, branch string) {
		if !utf8.ValidString(name) || !utf8.ValidString(branch) || len(name) > 500 {
			t.Skip("a regular expression must be valid UTF-8 and of reasonable length")
		}
		parts := strings.Split(name, "*")
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(branch)
		if got := protection.Match(name, branch); got != want {
			t.Errorf("Match(%q, %q) = %t, want %t", name, branch, got, want)
		}
	})
}
