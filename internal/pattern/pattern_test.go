package pattern_test

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/pattern"
)

func TestCompile_limitsSize(t *testing.T) {
	for expression, large := range map[string]bool{
		"":                        false,
		strings.Repeat("a", 1024): false,
		`[0-9a-f]{40}(-rc\d+)?`:   false,
		`(?:\d{1,3}\.){1,3}\w*`:   false,
		"(?:" + strings.Repeat("a?", 500) + "){1000}b": true,
		"(?:abc){1000}":   true,
		"(a|b|c){1,1000}": true,
	} {
		for name, compile := range map[string]func(string) error{
			"Compile": func(e string) error { _, err := pattern.Compile(e); return err },
			"Whole":   func(e string) error { _, err := pattern.Whole(e); return err },
		} {
			if err := compile(expression); errors.Is(err, pattern.ErrTooLarge) != large || err != nil && !large {
				t.Errorf("%s(%.40q): %v", name, expression, err)
			}
		}
	}
}

func TestCompile_refusesMalformedExpressions(t *testing.T) {
	for _, expression := range []string{"(", "a(?=b)", `\`, "a{1001}", "a)(b"} {
		_, err := pattern.Compile(expression)
		if !errors.As(err, new(*syntax.Error)) {
			t.Errorf("Compile(%q): %v", expression, err)
		}
		if _, err := pattern.Whole(expression); !errors.As(err, new(*syntax.Error)) {
			t.Errorf("Whole(%q): %v", expression, err)
		}
	}
}

func TestBranches_refusesFullNames(t *testing.T) {
	for expression, refused := range map[string]bool{
		"^refs/.*": true, `^refs\/heads\/main`: true, `\Arefs/`: true, "^(refs/heads|refs/tags)/x$": true, "^(refs/.*)$": true,
		"refs/heads/main": true, "^main$": false, "refs/": false, "^references": false, "^refs?/": false, "^refs/a|main": false, "(?i)^refs/": false, "": false,
		"^refs/a|^refs/b": true, "^(refs)/a": true, "(^refs/a|^(?:refs)/b)$": true, "^(refs/a)+": true, "(?m)^refs/": true, "^refs/a|b": false, "^(refs/a)?": false,
		"^(refs/a|ref)": false, "^refs/a|^$": false, "x|^refs/": false, "^refs$": false, `\b^refs/`: true, "^(refs/|release/)": false, "x^refs/": false,
	} {
		if _, err := pattern.Branches(expression); errors.Is(err, pattern.ErrFullName) != refused || err != nil && !refused {
			t.Errorf("Branches(%q): %v", expression, err)
		}
	}
	if _, err := pattern.Branches("("); !errors.As(err, new(*syntax.Error)) {
		t.Errorf("a malformed expression: %v", err)
	}
}

func TestWhole_matchesWholeTexts(t *testing.T) {
	for _, tt := range []struct {
		expression, text string
		want             bool
	}{
		{"a|b", "a", true}, {"a|b", "ab", false}, {`\Qv1.0`, "v1.0", true}, {`\Qv1.0`, "v1x0", false}, {`\Qa|b\E|c`, "c", true}, {`\Qa|b\E|c`, "a", false},
		{"(?i)rc.*", "RC1", true}, {"(?i)rc|x", "X", true}, {"(?m)^a$", "a\nb", false}, {"a", "a\n", false}, {"", "", true}, {"", "a", false},
		{`(?s).`, "\n", true}, {`.`, "\n", false}, {"(?U)a+", "aaa", true}, {`a\z`, "a", true}, {`[\x{1F600}-\x{1F64F}]`, "😀", true},
	} {
		e, err := pattern.Whole(tt.expression)
		if err != nil || e.MatchString(tt.text) != tt.want {
			t.Errorf("Whole(%q) with %q: %v, want %t", tt.expression, tt.text, err, tt.want)
		}
	}
}
