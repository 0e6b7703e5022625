package object

import (
	"slices"
	"strings"
	"testing"
)

// FuzzCandidates looks for revisions that lead git to anything other than a branch, a tag or a commit.
func FuzzCandidates(f *testing.F) {
	for _, seed := range []string{"main", "HEAD~1^2", "refs/heads/a", "refs/forgeplane/x", "-x", "a:b", "a..b", "a@{1}", "0123abcd", "a\x00b", ":/x", "^main"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, revision string) {
		for _, name := range Candidates(revision) {
			base, rest, _ := strings.Cut(strings.TrimSuffix(name, "^{commit}"), "^")
			base, _, _ = strings.Cut(base, "~")
			known := base == "HEAD" || abbreviated.MatchString(base) ||
				(strings.HasPrefix(base, "refs/heads/") || strings.HasPrefix(base, "refs/tags/")) && CheckRefName(base) == nil
			if !known || strings.Trim(rest, "^~0123456789") != "" || strings.ContainsAny(name, "\x00\n:") || strings.Contains(name, "@{") {
				t.Errorf("%q leads to %q", revision, name)
			}
		}
	})
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"", "/", "a/b/", "../a", "a/../b", "./a", "a//b", "a\x00", "a\nb", ".git"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		clean, ok := CleanPath(path)
		if !ok {
			return
		}
		parts := strings.Split(clean, "/")
		if strings.ContainsRune(clean, 0) || slices.Contains(parts, "..") || clean != "" && slices.Contains(parts, "") {
			t.Errorf("%q is taken for %q", path, clean)
		}
		if again, ok := CleanPath(clean); !ok || again != clean {
			t.Errorf("%q becomes %q", clean, again)
		}
	})
}

func FuzzTrailers(f *testing.F) {
	f.Add("Title\n\nChangelog: added\n goes on\n# comment\n\n")
	f.Add("Title\n\n(cherry picked from commit 1)\nx\n :\n")
	f.Fuzz(func(t *testing.T, message string) {
		for _, trailer := range (&Commit{Message: message}).Trailers() {
			if trailer.Key == "" || strings.ContainsAny(trailer.Key, " \t\n:") || strings.Contains(trailer.Value, "\n") {
				t.Errorf("%q has the trailer %+v", message, trailer)
			}
		}
	})
}
