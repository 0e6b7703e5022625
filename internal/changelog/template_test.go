package changelog

import (
	"errors"
	"strings"
	"testing"
)

// shown renders a template with some entries: two in "fixed", and one each in "added" and "other".
func shown(t testing.TB, source string) (string, error) {
	t.Helper()
	parsed, err := parseTemplate(source)
	if err != nil {
		return "", err
	}
	return parsed.render(data{Release{Config: configOf(t, ""), Entries: some}.categories()})
}

func TestTemplate_isRendered(t *testing.T) {
	for source, want := range map[string]string{
		"plain } %} }} { text\n": "plain } %} }} { text\n",
		"":                       "",
		// Values.
		"{{ categories.0.title }}":                               "fixed",
		"{{categories.1.entries.0.commit.reference}}":            "acme/web@c",
		"{{ categories.0.count }}":                               "2",
		"{{ categories.1.single_change }}":                       "true",
		"{{ categories.9.title }}{{ categories.x }}":             "",
		"{{ nothing }}{{ nothing.of.it }}":                       "",
		"{{ categories }}{{ categories.0 }}{{ it }}":             "",
		"{{ categories.0.title.0 }}":                             "",
		"{{ categories.0.entries.0.commit.trailers.Changelog }}": "fixed",
		"{{ categories.0.entries.0.merge_request.web_url }}":     "",
		"{{ categories.1.entries.0.merge_request.web_url }}":     "https://forge.example/acme/web/-/merge_requests/7",
		// Conditions.
		"{% if categories %}yes{% else %}no{% end %}":                                  "yes",
		"{% if categories.0.single_change %}yes{% else %}no{% end %}":                  "no",
		"{% if categories.0.entries.1.author %}yes{% end %}":                           "",
		"{% if categories.0.entries.0.author %}yes{% end %}":                           "yes",
		"{% if categories.0.count %}yes{% end %}":                                      "yes",
		"{% if categories.0.entries.0.commit.trailers.None %}yes{% else %}no{% end %}": "no",
		"{% if categories.0.entries.0.commit.trailers %}yes{% end %}":                  "yes",
		"{% if a %}1{% else %}{% if b %}2{% else %}3{% end %}4{% end %}5":              "345",
		"{% if categories %}{% if a %}1{% else %}2{% end %}3{% else %}4{% end %}":      "23",
		// Loops.
		"{% each categories %}{{ title }},{% end %}":                              "fixed,added,other,",
		"{% each categories %}{% each entries %}{{ title }};{% end %}{% end %}":   "Last;Second;Third;First;",
		"{% each it.categories %}{% if it %}{{ it.title }},{% end %}{% end %}":    "fixed,added,other,",
		"{% each categories %}{% each it.entries %}{{ count }}{% end %}{% end %}": "",
		"{% each categories.0.title %}x{% end %}{% each nothing %}x{% end %}":     "",
		"{% each categories.0.entries.0.commit.trailers %}x{% end %}":             "",
		// Line breaks.
		"---\n{% if categories %}\nbar\n{% end %}\n---\n":               "---\nbar\n---\n",
		"{% if categories %}\n\nbar{% end %}\r\n.":                      "\nbar.",
		"{{ categories.0.count }}\n{{ categories.0.count }}\n":          "2\n2\n",
		"one \\\ntwo\\\r\nthree\\ four\\":                               "one twothree\\ four\\",
		"\\\\\nx":                                                       "\\x",
		"{% if categories %}\\\n{{ categories.0.title }}\\\n{% end %}!": "fixed!",
		"{%if categories%}{{categories.0.title}}{%   end   %}":          "fixed",
	} {
		if got, err := shown(t, source); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", source, got, err, want)
		}
	}
}

func TestTemplate_reportsPositionOfErrors(t *testing.T) {
	const name = "one name of a value is expected, as in title or commit.reference, not "
	for source, want := range map[string]string{
		"{{ a":                             "line 1, column 1: there is no }} on this line",
		"\n\n  {% if a\n%}":                "line 3, column 3: there is no %} on this line",
		"äö {{ a b }}":                     "line 1, column 4: " + name + `"a b"`,
		"{{ }}":                            "line 1, column 1: " + name + `""`,
		"{{ a..b }}":                       "line 1, column 1: " + name + `"a..b"`,
		"{{ a.(b) }}":                      "line 1, column 1: " + name + `"a.(b)"`,
		"x\n{% each %}":                    "line 2, column 1: " + name + `""`,
		"{% if a %}\n{% else %}\n":         "line 1, column 1: {% if %} has no {% end %}",
		"{% each a %}{% if b %}{% end %}":  "line 1, column 1: {% each %} has no {% end %}",
		"{% each a %}{% else %}{% end %}":  "line 1, column 13: {% else %} belongs to no {% if %}",
		"{% if a %}{% else %}{% else %}":   "line 1, column 21: {% else %} belongs to no {% if %}",
		"a\\\nb{% end %}":                  "line 2, column 2: {% end %} belongs to nothing",
		"{% else %}":                       "line 1, column 1: {% else %} belongs to nothing",
		"{% for a %}":                      "line 1, column 1: a statement is if, each, else or end",
		"{% end if %}":                     "line 1, column 1: a statement is if, each, else or end",
		"{% %}":                            "line 1, column 1: a statement is if, each, else or end",
		strings.Repeat("{% if a %}\n", 33): "line 33, column 1: statements are nested deeper than 32",
	} {
		_, err := shown(t, source)
		if is := Error(""); !errors.As(err, &is) || err.Error() != "Invalid template, "+want {
			t.Errorf("%.60q\ngot  %v\nwant %s", source, err, want)
		}
	}
	if _, err := parseTemplate(strings.Repeat("a", maxTemplate+1)); err == nil {
		t.Error("a template has no limit")
	}
}

func TestTemplate_limitsStepsAndOutput(t *testing.T) {
	// For each of a thousand commits, the templates iterate over all of them again.
	all := make([]Entry, 1000)
	for i := range all {
		all[i] = an("a", strings.Repeat("x", 1000), "a")
	}
	for source, want := range map[string]string{
		`{% each x %}{% each x %}{% each x %}{% end %}{% end %}{% end %}`: "The template takes more than 2000000 steps",
		`{% each x %}{% each x %}{{ title }}{% end %}{% end %}`:           "The changelog is larger than 8388608 bytes",
	} {
		parsed, err := parseTemplate(source)
		if err != nil {
			t.Fatal(err)
		}
		var r renderer
		var looped circle
		for i := range all {
			looped = append(looped, entry{&all[i]})
		}
		if err := r.all(parsed, looped); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

// circle is a list whose elements contain the list itself.
type circle []entity

func (c circle) field(string) any {
	again := make([]entity, len(c))
	for i := range c {
		again[i] = titledCircle{c}
	}
	return again
}

type titledCircle struct{ circle }

func (c titledCircle) field(name string) any {
	if name == "title" {
		return c.circle[0].field(name)
	}
	return c.circle.field(name)
}
