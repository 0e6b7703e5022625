package object_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/test/soak"
)

func TestCheckBranchName(t *testing.T) {
	for name, want := range map[string]string{
		"main": "", "release/1": "", "ref/heads/main": "", "refs": "",
		"refs/heads/prod": "write prod, not refs/heads/prod", "refs/x": "begins with refs/", "": `an extra "/"`, "a..b": `".."`, "-x": `begins with "-"`,
	} {
		if err := object.CheckBranchName(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckBranchName(%q) = %v, want %q", name, err, want)
		}
	}
}

func TestCheckRefName(t *testing.T) {
	for _, name := range []string{
		"refs/heads/main", "refs/heads/a/b/c", "refs/tags/v1.0", "refs/notes/commits", "refs/heads/größe", "refs/heads/日本",
		"refs/heads/a.b", "refs/heads/@", "refs/heads/a@b", "refs/heads/{", "refs/heads/a-", "refs/heads/a/-b", "refs/heads/%41",
		"refs/heads/HEAD", "refs/heads/'\"$(x);&|", "refs/heads/" + strings.Repeat("a", 250),
	} {
		if err := object.CheckRefName(name); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{
		"":                                       `it has no "/"`,
		"main":                                   `it has no "/"`,
		"refs/heads/":                            `an extra "/"`,
		"refs//main":                             `an extra "/"`,
		"/refs/heads/main":                       `an extra "/"`,
		"refs/heads/..":                          `".."`,
		"refs/heads/../../etc/passwd":            `".."`,
		"refs/heads/a..b":                        `".."`,
		"refs/heads/.a":                          `begins with "."`,
		"refs/heads/a/.b":                        `begins with "."`,
		"refs/heads/a.":                          `ends with "."`,
		"refs/heads/a.lock":                      `".lock"`,
		"refs/heads/a.lock/b":                    `".lock"`,
		"refs/heads/-x":                          `begins with "-"`,
		"refs/heads/--upload-pack=x":             `begins with "-"`,
		"refs/tags/-x":                           `begins with "-"`,
		"--x/y":                                  `begins with "-"`,
		"refs/heads/a b":                         `' '`,
		"refs/heads/a~1":                         `'~'`,
		"refs/heads/a^":                          `'^'`,
		"refs/heads/a:b":                         `':'`,
		"refs/heads/a?":                          `'?'`,
		"refs/heads/*":                           `'*'`,
		"refs/heads/[a":                          `'['`,
		`refs/heads/a\b`:                         `'\\'`,
		"refs/heads/a@{1}":                       `"@{"`,
		"refs/heads/a\x00b":                      "control character",
		"refs/heads/a\nb":                        "control character",
		"refs/heads/a\x7f":                       "control character",
		"refs/heads/a\u0085b":                    "control character",
		"refs/heads/\xff":                        "UTF-8",
		"refs/heads/" + strings.Repeat("a", 251): "longer than 250 bytes",
		"refs/heads/" + strings.Repeat("a/", 1000): "longer than 1024 bytes",
	} {
		err := object.CheckRefName(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", name, err, want)
		}
		if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%.40q: the message has control characters", name)
		}
	}
}

// wanted returns git's own decision about a name.
func wanted(t *testing.T, name string) bool {
	t.Helper()
	if strings.ContainsRune(name, 0) || !utf8.ValidString(name) || len(name) > object.MaxRefName || strings.HasPrefix(name, "-") {
		return false
	}
	for i, part := range strings.Split(name, "/") {
		if len(part) > 250 || strings.HasPrefix(part, "-") && (i == 2 && strings.HasPrefix(name, "refs/")) {
			return false
		}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 && unicode.IsControl(r) }) {
		return false
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return exec.CommandContext(ctx, "git", "check-ref-format", name).Run() == nil
}

func TestCheckRefName_agreesWithGit(t *testing.T) {
	// Names that are composed of the parts that the rules mention.
	parts := []string{"refs", "/", "/", "heads/", "a", "-", ".", ".", ".lock", "@", "{", "@{", "\\", "*", " ", "~", "\x01", "ä", "\u0080", "\xff", "[", "b", "c"}
	random := rand.New(rand.NewPCG(1, 2))
	for range soak.Times(300, 1500) {
		name := ""
		if random.IntN(2) == 0 {
			name = "refs/heads/"
		}
		for range 1 + random.IntN(5) {
			name += parts[random.IntN(len(parts))]
		}
		if got, want := object.CheckRefName(name) == nil, wanted(t, name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

func FuzzCheckRefName(f *testing.F) {
	f.Add("refs/heads/main")
	f.Add("refs/heads/a@{-.lock")
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := object.CheckRefName(name) == nil, wanted(t, name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	})
}
