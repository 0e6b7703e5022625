package ci_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
)

// each returns a text with each of the numbers from 1 to n in place of %d, and the number before it in place of %p.
func each(n int, format, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.NewReplacer("%d", fmt.Sprint(i+1), "%p", fmt.Sprint(i)).Replace(format)
	}
	return strings.Join(all, separator)
}

// nested returns a value in lists.
func nested(depth int, value string) string {
	return strings.Repeat("[", depth) + value + strings.Repeat("]", depth)
}

// oversized are configurations that exceed a limit, and their problems.
var oversized = map[string]struct{ content, want string }{
	"bytes":                    {strings.Repeat("#", 1<<20+1), "x.yml: the file is larger than 1048576 bytes"},
	"depth":                    {"a: " + nested(1000, ""), "x.yml:1: the values are nested more than 50 deep"},
	"jobs":                     {each(1001, "j%d: {script: x}", "\n"), "x.yml:1: the configuration has more than 1000 jobs"},
	"the name of a job":        {"? " + strings.Repeat("x", 1<<19) + "\n: {script: x}", "the name of a job must have 1 to 255 bytes"},
	"included files":           {"include: {project: acme/shared, file: [" + each(101, "b.yml", ",") + "]}\na: {script: x}", "x.yml:1: include: the configuration includes more than 100 files"},
	"values of included files": {"include: [ci/large.yml, ci/large.yml]\na: {script: x}", "ci/large.yml: the configuration has more than 100000 values, with its included files"},
	"aliases":                  {".r0: &r0 [" + each(10, "x", ",") + "]\n" + each(9, ".r%d: &r%d ["+strings.Repeat("*r%p,", 10)+"]", "\n") + "\na: {script: x}", "the file has more than 100000 values, with its anchors expanded"},
	"references":               {".r0: [" + each(10, "x", ",") + "]\n" + each(9, ".r%d: ["+strings.Repeat("!reference [.r%p],", 10)+"]", "\n") + "\na: {script: x}", "the configuration has more than 100000 values, with references expanded"},
	"extends":                  {".e0: {script: [" + each(200, "x", ",") + "]}\n" + each(9, ".e%d: {extends: ["+strings.Repeat(".e%p,", 1000)+"]}", "\n") + "\na: {extends: .e9}", "extends: extends expands to too many values"},
	"values of matrices":       {"a: {script: x, parallel: {matrix: [{" + each(1000, "A%d: x", ",") + "}]}}", "a:parallel:matrix:A447: the matrices have more than 100000 values, with all combinations"},
	"texts of aliases":         {".a: &a " + strings.Repeat("x", 500_000) + "\n.b: [" + each(20, "*a", ",") + "]\na: {script: x}", "x.yml:2: the file has more than 100000 values, with its anchors expanded"},
	"keys of aliases":          {".a: &a " + strings.Repeat("x", 500_000) + "\n.b: [" + each(20, "{? *a : x}", ",") + "]\na: {script: x}", "x.yml:1: the file has more than 100000 values, with its anchors expanded"},
	"depth of aliases":         {".a: &a " + nested(30, "x") + "\n.b: " + nested(30, "*a") + "\na: {script: x}", "x.yml:2: the values are nested more than 50 deep"},
	"depth of references":      {".a: " + nested(30, "x") + "\n.b: " + nested(30, "!reference [.a]") + "\na: {script: x}", "x.yml:2: .b: the values are nested more than 50 deep, with references expanded"},
	"texts of references":      {".a: {k: " + strings.Repeat("x", 500_000) + "}\n.b: [" + each(20, "!reference [.a, k]", ",") + "]\na: {script: x}", "x.yml:2: .b: the configuration has more than 100000 values, with references expanded"},
	"references to lists":      {".a: {k: x}\n.b: [" + each(30_000, "x", ",") + ", !reference [.a, k]]\n.c: [" + each(1000, "!reference [.b]", ",") + "]\na: {script: x}", "x.yml:3: .c: the configuration has more than 100000 values, with references expanded"},
	"chains of extends":        {chain(100), "more than 11 jobs extend each other"},
	"inherited values":         {"default: {before_script: [" + each(1000, "x", ",") + "]}\n" + each(101, "a%d: {script: x}", "\n"), "x.yml:1: default:before_script: the jobs inherit more than 100000 values"},
	"patterns":                 {each(251, `a%d: {script: x, rules: [{if: '$A =~ /^v%d/'}]}`, "\n"), "x.yml:251: a251:rules:if: invalid expression: the configuration has more than 250 patterns"},
	"patterns of includes":     {"include:\n" + each(251, `- {local: ci/more.yml, rules: [{if: '$A =~ /^v%d/ && $A =~ /^w%d/'}]}`, "\n") + "\na: {script: x}", "x.yml:127: include:rules:if: invalid expression: the configuration has more than 250 patterns"},
	"expressions of only":      {"a: {script: x, only: {variables: [" + each(51, "$A", ",") + "]}}", "x.yml:1: a:only:variables: has more than 50 expressions"},
	"the text of a problem":    {"a: {script: x, extends: " + strings.Repeat("x", 500_000) + "}", "xxx..."},
	"the keys of a problem":    {"a: {script: x, ? " + strings.Repeat("x", 500_000) + " : x}", "xxx...: unknown keyword"},
	"many problems of a list":  {"a: {script: x, extends: [" + each(1000, "b%d", ",") + "]}", `a:extends: there is no job "b50"`},
}

// chain returns hidden jobs that extend each other.
func chain(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, ".d%d: {extends: .d%d}\n", i, i+1)
	}
	return text.String() + fmt.Sprintf(".d%d: {script: x}\na: {script: x}\n", n)
}

func TestLoad_refusesOversizedConfigurations(t *testing.T) {
	files := repository()
	files.files["ci/large.yml"] = ".a: [" + each(60_000, "x", ",") + "]"
	for name, tt := range oversized {
		l, err := branch(files).Load(t.Context(), "x.yml", []byte(tt.content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := l.Problems.Error()
		if !strings.Contains(got, tt.want) || len(l.Problems) > document.MaxProblems || len(got) > 10_000 {
			t.Errorf("%s: got %d problems, %.1000s", name, len(l.Problems), got)
		}
	}
}

func TestLoad_countsSharedPatternsOnce(t *testing.T) {
	l, err := branch(repository()).Load(t.Context(), "x.yml", []byte(each(300, `a%d: {script: x, rules: [{if: '$A%d =~ /^v/'}]}`, "\n")))
	if err != nil || len(l.Problems) > 0 {
		t.Errorf("got %v, %v", l.Problems, err)
	}
}

// tooManyComparisons is the error of a plan whose patterns take too long.
const tooManyComparisons = ".forgeplane-ci.yml:1: a: the patterns of the configuration take too many comparisons with paths and variables"

// The pattern fails at the first character, but other texts could take all the steps that it counts as.
func TestPlan_limitsMatches(t *testing.T) {
	text := config.Variable{Key: "T", Value: strings.Repeat("x", 200_000)}
	condition := "'" + each(20, "$T =~ /^y(x?){600}/", " || ") + "'"
	for _, content := range []string{"a: {script: x, rules: [{if: " + condition + "}]}", "a: {script: x, only: {variables: [" + condition + "]}}"} {
		if got := shown(t, branch(repository(), text), content); got != tooManyComparisons {
			t.Errorf("%.50s: got %s", content, got)
		}
	}
}

func TestPlan_reportsMistakes(t *testing.T) {
	for content, want := range map[string]string{
		"variables: {" + each(1000, "A%d: x", ",") + "}\n" + each(3, "a%d: {script: x, parallel: 200}", "\n"): ".forgeplane-ci.yml:4: a3: the jobs have more than 500000 variables, with all instances",
		each(11, "a%d: {script: x, parallel: 200}", "\n"):                                                     ".forgeplane-ci.yml:11: a11: the pipeline has more than 2000 jobs",
		each(51, "a%d: {script: x, parallel: 200, rules: []}", "\n"):                                          ".forgeplane-ci.yml:51: a51: the configuration has more than 10000 jobs, with all instances",
		each(2, "a%d: {script: x, parallel: 200}", "\n") + "\nb: {script: x, needs: [a1, a2]}":                ".forgeplane-ci.yml:3: b:needs: the job needs more than 250 instances of jobs",
		"a: {script: x, parallel: {matrix: [{A: [1, 1]}]}}":                                                   `.forgeplane-ci.yml:1: a: there is another job with the name "a: [1]"`,
		"a: {script: x, tags: [$LONG]}":                                                                       ".forgeplane-ci.yml:1: a:tags: is longer than 255 bytes with its variables",
		"a: {script: x, environment: {name: $LONG}}":                                                          ".forgeplane-ci.yml:1: a:environment: is longer than 255 bytes with its variables",
		"a: {trigger: {include: $LONG$LONG$LONG$LONG}}":                                                       ".forgeplane-ci.yml:1: a:trigger:include: is longer than 1024 bytes with its variables",
		"workflow: {rules: [{changes: {paths: [x], compare_to: nul}}]}\na: {script: x}":                       `.forgeplane-ci.yml:1: workflow: rules:changes:compare_to: there is no branch, tag or commit "nul"`,
		"workflow: {name: $LONG}\na: {script: x}":                                                             ".forgeplane-ci.yml:1: workflow:name: is longer than 255 bytes with its variables",
	} {
		if got := shown(t, branch(repository(), config.Variable{Key: "LONG", Value: strings.Repeat("x", 300)}), content); got != want {
			t.Errorf("%.100s: got %.1000s, want %s", content, got, want)
		}
	}
}

func TestPlan_limitsComparisons(t *testing.T) {
	files := repository()
	for i := range 1100 {
		files.files[strings.Repeat("b", 4000)+fmt.Sprint(i)] = ""
	}
	for content, want := range map[string]string{
		"a: {script: x, rules: [{exists: ['?" + strings.Repeat("a", 2000) + "']}]}":                                      tooManyComparisons,
		"a: {script: x, rules: [" + each(11, "{changes: {paths: [x], compare_to: r%d}}", ",") + "]}":                     ".forgeplane-ci.yml:1: a: rules:changes:compare_to: the configuration compares with more than 10 refs",
		"a: {script: x, rules: [" + each(10, "{changes: {paths: [x], compare_to: r%d}}", ",") + ", {changes: [src/*]}]}": "test|a|x",
	} {
		if got := shown(t, branch(files), content); got != want {
			t.Errorf("%.100s: got %s, want %s", content, got, want)
		}
	}
}

// The 5,000 patterns took more than a minute when each took milliseconds to compile.
func TestPlan_compilesThousandsOfPatterns(t *testing.T) {
	patterns := strings.ReplaceAll(each(50, "'**/%d-#'", ","), "#", "%d")
	content := "a: {script: x}\nb: {script: x, rules: [" + each(100, "{exists: ["+patterns+"]}", ",") + "]}"
	if got := shown(t, branch(repository()), content); got != "test|a|x" {
		t.Errorf("got %s", got)
	}
}

func TestPlan_endsWithItsContext(t *testing.T) {
	p := branch(repository())
	l, err := p.Load(t.Context(), "x.yml", []byte("a: {script: x, rules: [{exists: ['*.none']}]}"))
	if err != nil || len(l.Problems) > 0 {
		t.Fatal(l.Problems, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Plan(ctx, l.Config); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
