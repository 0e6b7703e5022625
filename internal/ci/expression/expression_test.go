package expression_test

import (
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/ci/expression"
)

func lookup(name string) (value string, raw, ok bool) {
	value, ok = map[string]string{
		"BRANCH": "feature/Login", "EMPTY": "", "BLANK": "  ", "YES": "true", "SAME": "true", "PATTERN": "/^feature/", "BROKEN": "/(/", "WORD": "feature",
		"NESTED": "<$YES-${WORD}>", "RAW": "<$YES>", "LOOP": "a$LOOP", "DOUBLE": "$LOOP$LOOP", "BIG": strings.Repeat("x", 1000), "BIGGER": strings.Repeat("$BIG", 1000),
		"E0": strings.Repeat("$E1", 1000), "E1": strings.Repeat("$E2", 1000), "E2": strings.Repeat("$E0", 1000),
	}[name]
	return value, name == "RAW", ok
}

func TestTrue_evaluatesConditions(t *testing.T) {
	for text, want := range map[string]bool{
		`$YES`:                                 true,
		`$EMPTY`:                               false,
		`$BLANK`:                               false,
		`$MISSING`:                             false,
		`"text"`:                               true,
		`""`:                                   false,
		`null`:                                 false,
		`$YES == "true"`:                       true,
		`'true' == $YES`:                       true,
		`$YES == $SAME`:                        true,
		`$YES != "true"`:                       false,
		`$YES=="true"&&$SAME=="true"`:          true,
		`$MISSING == null`:                     true,
		`$MISSING == ""`:                       false,
		`$EMPTY == ""`:                         true,
		`$EMPTY == null`:                       false,
		`$EMPTY != null`:                       true,
		`$MISSING != "x"`:                      true,
		`$YES == "$YES"`:                       false,
		`$BRANCH =~ /^feature\//`:              true,
		`$BRANCH =~ /login$/`:                  false,
		`$BRANCH =~ /login$/i`:                 true,
		`$BRANCH !~ /^main$/`:                  true,
		`$MISSING =~ /.*/`:                     false,
		`$MISSING !~ /.*/`:                     true,
		`$BRANCH =~ $PATTERN`:                  true,
		`$BRANCH !~ $PATTERN`:                  false,
		`$BRANCH =~ $WORD`:                     false,
		`$BRANCH !~ $WORD`:                     false,
		`$BRANCH =~ $BROKEN`:                   false,
		`$BRANCH =~ "/Login/"`:                 true,
		`$MISSING || $YES`:                     true,
		`($MISSING || $WORD) == "feature"`:     true,
		`($YES && $WORD) == "feature"`:         true,
		`$YES || $MISSING && $MISSING`:         true,
		`($YES || $MISSING) && $MISSING`:       false,
		`$MISSING && $MISSING || $YES`:         true,
		"$YES\n  && ($SAME != 'x')":            true,
		`(($BRANCH =~ /x/) || $YES == "true")`: true,
	} {
		e, err := expression.Parse(text)
		steps := 1_000_000
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := e.True(lookup, &steps); got != want {
			t.Errorf("%s is %t, want %t", text, got, want)
		}
	}
}

func TestTrue_countsSteps(t *testing.T) {
	for text, want := range map[string]int{`$BIG == "x"`: 50, `$YES =~ /^t/`: 12, `$BIG =~ /(xx){10}/`: 21_000, `$BIG !~ $PATTERN`: 15_000} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		steps := 1_000_000
		if e.True(lookup, &steps); 1_000_000-steps < want || 1_000_000-steps > 3*want {
			t.Errorf("%s takes %d steps, want about %d", text, 1_000_000-steps, want)
		}
		if steps = want - 1; e.True(lookup, &steps) {
			t.Errorf("%s is true without the steps for it", text)
		}
	}
}

func TestParse_refusesInvalidExpressions(t *testing.T) {
	for text, want := range map[string]string{
		``:                                  "ends where a value is expected",
		`$A ==`:                             "ends where a value is expected",
		`$A == == $B`:                       `"==" is not expected there`,
		`$A $B`:                             `"B" is not expected there`,
		`($A`:                               "a parenthesis is not closed",
		`$A)`:                               `")" is not expected there`,
		`$A == /x/`:                         "must be on the right of =~",
		`$A =~ /(/`:                         "the pattern \"/(/\" is invalid",
		`$A =~ /(a|b|c){1,1000}/`:           "too large",
		`${A}`:                              "is neither a variable",
		`$A = "x"`:                          "is neither a variable",
		`$A == "x`:                          "is neither a variable",
		`true`:                              "is neither a variable",
		strings.Repeat("(", 60) + `$A`:      "nested more than 50 deep",
		strings.Repeat("$A||", 4000) + `$A`: "longer than 10000 bytes",
	} {
		if _, err := expression.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: got %v, want %s", text, err, want)
		}
	}
}

func TestExpand_replacesVariables(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "$YES/${WORD}": "true/feature", "$MISSING-": "-", "$$YES": "$$YES", "$NESTED": "<true-feature>", "$RAW-$YES": "<$YES>-true", "%YES%": "%YES%", "a$": "a$", "${": "${",
		"$LOOP": strings.Repeat("a", 11) + "$LOOP",
	} {
		if got := expression.Expand(text, lookup); got != want {
			t.Errorf("%s becomes %q, want %q", text, got, want)
		}
	}
	if got := len(expression.Expand(strings.Repeat("$BIGGER", 1000), lookup)); got != 64<<10 {
		t.Errorf("a very long text has %d bytes", got)
	}
	// It would take 10^30 steps.
	if got := expression.Expand("$E0", lookup); len(got) > 64<<10 {
		t.Errorf("a nest of variables has %d bytes", len(got))
	}
}

// FuzzParse looks for expressions with which the parser or the evaluation panics.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`$A == "b" && ($C =~ /d\/e/i || $F != null)`, `$A =~ $B`, `((`, `'`, `/`, `$A !~ /[/`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := expression.Parse(text)
		if err == nil {
			steps := 1_000_000
			e.True(func(name string) (string, bool, bool) { return name, false, name != "" && name[0] != 'N' }, &steps)
		}
		if got := expression.Expand(text, lookup); len(got) > 64<<10 {
			t.Errorf("%q expands to %d bytes", text, len(got))
		}
	})
}
