package condition_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
)

// matches returns the paths that a pattern of rules matches.
func matches(t *testing.T, glob string, paths ...string) (matched []string) {
	t.Helper()
	for _, path := range paths {
		is, err := condition.New(nil, nil).NewPaths([]string{path}).Any(t.Context(), glob)
		if err != nil {
			t.Fatalf("%q: %v", glob, err)
		}
		if is {
			matched = append(matched, path)
		}
	}
	return matched
}

// Ruby documents for FNM_PATHNAME that a set matches no slash.
func TestAny_setsMatchNoSlash(t *testing.T) {
	for glob, want := range map[string]string{
		"a[/]b": "", "a[+-9]b": "a.b", "a[!x]b": "a.b", "a[^+-.]b": "", "a[.-0]b": "a.b", "a[!-a]b": "a.b", "a[z-a]b": "", "a[/]a]b": "", `a[\.]b`: "a.b", "a[[.]b": "a.b",
	} {
		if got := strings.Join(matches(t, glob, "a/b", "a.b"), " "); got != want {
			t.Errorf("%s matches %q, want %q", glob, got, want)
		}
	}
}

// GitLab documents the first four patterns.
func TestMatching_knowsOnlyStars(t *testing.T) {
	paths := condition.New(nil, nil).NewPaths([]string{"ci/a.yml", "ci/b/c.yml", "ci/b/d/e.yml", "ci/[a].yml", "ci/?.yml", "ciba.yml"})
	for glob, want := range map[string]string{
		"ci/*.yml": "ci/?.yml ci/[a].yml ci/a.yml", "ci/**.yml": "ci/?.yml ci/[a].yml ci/a.yml ci/b/c.yml ci/b/d/e.yml", "ci/**/*.yml": "ci/b/c.yml ci/b/d/e.yml",
		"/ci/b/*.yml": "ci/b/c.yml", "ci/[a]*": "ci/[a].yml", "ci/?.*": "ci/?.yml", "ci/{a}*": "", "ci?*": "", "*": "ciba.yml", `ci/\*`: "",
	} {
		found, err := paths.Matching(t.Context(), glob, 10)
		if got := strings.Join(found, " "); err != nil || got != want {
			t.Errorf("%s matches %q, want %q; %v", glob, got, want, err)
		}
	}
}

// set is a set of characters in a pattern. Its slashes match none.
var set = regexp.MustCompile(`\[[^\]]+\]`)

// FuzzGlob looks for patterns of rules that match paths in more directories than they name, or not the paths that they must match.
func FuzzGlob(f *testing.F) {
	for glob, path := range map[string]string{
		"src/**/*.go": "src/a/b.go", "*.{c,go}": "a.go", "a[+-9]b": "a/b", "[!a]?": "b/", `\*`: "*", "{a/b,c}": "a/b", "../*": "../x", "**/": "a/", "[]": "[]", "{": "{",
	} {
		f.Add(glob, path)
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		slashes := strings.Count(set.ReplaceAllString(strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/"), "x"), "/")
		for _, match := range matches(t, glob, path, "a/b", "a/b/c.go", "e") {
			if !strings.Contains(glob, "**/") && !strings.Contains(glob, `\`) && strings.Count(match, "/") > slashes {
				t.Errorf("%q matches %q", glob, match)
			}
		}
		plain := !strings.ContainsAny(path, `*?[{\`) && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "./")
		if plain && matches(t, path, path) == nil {
			t.Errorf("%q does not match itself", path)
		}
		if fs.ValidPath(path) && utf8.ValidString(path) && matches(t, "**/*", path) == nil {
			t.Errorf("**/* does not match %q", path)
		}
	})
}

// FuzzMatching looks for patterns of include:local that match paths that do not exist, too many paths, or paths in other directories.
func FuzzMatching(f *testing.F) {
	for glob, path := range map[string]string{"ci/*.yml": "ci/a.yml", "**.yml": "a/b.yml", "../*": "../x", "[*]": "[a]", `\**`: `\a`, "*/*/*": "a//b", "": ""} {
		f.Add(glob, path)
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		all := []string{path, "a/b", "a/b/c.go", ".hidden/d", "e"}
		found, err := condition.New(nil, nil).NewPaths(all).Matching(t.Context(), glob, 3)
		if err != nil || len(found) > 3 || !slices.IsSorted(found) {
			t.Errorf("%q matches %q; %v", glob, found, err)
		}
		begin, _, _ := strings.Cut(strings.TrimPrefix(glob, "/"), "*")
		slashes := strings.Count(strings.TrimPrefix(glob, "/"), "/")
		for _, match := range found {
			if !slices.Contains(all, match) || !strings.HasPrefix(match, begin) || !strings.Contains(glob, "**") && strings.Count(match, "/") != slashes {
				t.Errorf("%q matches %q", glob, match)
			}
		}
	})
}
