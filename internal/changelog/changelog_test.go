package changelog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func configOf(t testing.TB, content string) *Config {
	t.Helper()
	c, err := ParseConfig([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// an returns an entry of a category. Its commit has an id of one letter.
func an(category, title, id string, change ...func(*Entry)) Entry {
	e := Entry{
		Category: category, Title: title, Reference: "acme/web@" + id, WebURL: "https://forge.example/acme/web/-/commit/" + id,
		Trailers: map[string]string{"Changelog": category},
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func by(name string, credit bool) func(*Entry) {
	return func(e *Entry) { e.Author = &Author{Reference: "@" + name, Credit: credit, Contributor: credit} }
}

func brought(e *Entry) {
	e.MergeRequest = &MergeRequest{Reference: "acme/web!7", WebURL: "https://forge.example/acme/web/-/merge_requests/7"}
}

var some = []Entry{
	an("fixed", "Last", "d", by("ann", true)),
	an("added", "Third", "c", by("bo", false), brought),
	an("fixed", "Second", "b"),
	an("other", "First", "a", by("cy", true), brought),
}

var day = time.Date(2026, 6, 15, 23, 30, 0, 0, time.FixedZone("", 2*60*60))

func TestSection_followsConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		config, version string
		entries         []Entry
		want            string
	}{
		"default": {"", "1.0.0", some, `## 1.0.0 (2026-06-15)

### fixed (2 changes)

- [Last](acme/web@d) by @ann
- [Second](acme/web@b)

### added (1 change)

- [Third](acme/web@c) ([merge request](acme/web!7))

### other (1 change)

- [First](acme/web@a) by @cy ([merge request](acme/web!7))
`},
		"nothing": {"", "v1.0.0-rc.1+b", nil, "## v1.0.0-rc.1+b (2026-06-15)\n\nNo changes.\n"},
		"titles and their order": {"categories:\n  security: Security\n  added: News\n  fixed: Repairs\n", "1.0.0", some[:3], `## 1.0.0 (2026-06-15)

### News (1 change)

- [Third](acme/web@c) ([merge request](acme/web!7))

### Repairs (2 changes)

- [Last](acme/web@d) by @ann
- [Second](acme/web@b)
`},
		"two values of one title": {"categories: {added: News, fixed: News}", "1.0.0", some[:3], `## 1.0.0 (2026-06-15)

### News (3 changes)

- [Last](acme/web@d) by @ann
- [Third](acme/web@c) ([merge request](acme/web!7))
- [Second](acme/web@b)
`},
		"a date":              {`date_format: "%-d. %B %y, %H:%M %z"`, "1.0.0", nil, "## 1.0.0 (15. June 26, 23:30 +0200)\n\nNo changes.\n"},
		"a date of two lines": {`date_format: "%Y%n%m"`, "1.0.0", nil, "## 1.0.0 (2026 06)\n\nNo changes.\n"},
		"a template": {"template: |\n  {% each categories %}{% each entries %}\n  * {{ title }} {{ commit.web_url }}{% if author %} {{ author.contributor }}{% end %}\n\n  {% end %}{% end %}\n",
			"1.0.0", some[:2], "## 1.0.0 (2026-06-15)\n\n" +
				"* Last https://forge.example/acme/web/-/commit/d true\n* Third https://forge.example/acme/web/-/commit/c false\n"},
		"an empty template": {`template: ""`, "1.0.0", some, "## 1.0.0 (2026-06-15)\n\n\n"},
		"null values":       {"template:\ncategories: ~\ndate_format:\ntag_regex:\ninclude_groups:\n", "1.0.0", nil, "## 1.0.0 (2026-06-15)\n\nNo changes.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Release{Version: tt.version, Date: day, Config: configOf(t, tt.config), Entries: tt.entries}.Section()
			if err != nil || s.Text != tt.want {
				t.Errorf("%v\ngot\n%s\nwant\n%s", err, s.Text, tt.want)
			}
		})
	}
	if _, err := (Release{Version: "1.0", Config: configOf(t, "")}).Section(); err == nil {
		t.Error("1.0 is taken for a version")
	}
}

func TestParseConfig_refusesInvalidConfiguration(t *testing.T) {
	for config, want := range map[string]string{
		"categories: [a]":                 `The "categories" configuration key must be a Hash`,
		"categories: a":                   `The "categories" configuration key must be a Hash`,
		"categories:\n  a: b\n  c: [d]\n": `The "categories" configuration key maps text to text, which it does not in line 3`,
		"tag_regex: '('":                  "The regular expression to use for finding the previous tag for a version is invalid: error parsing regexp: missing closing ): `(`",
		"tag_regex: '(?=a)'":              "The regular expression to use for finding the previous tag for a version is invalid: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
		"tag_regex: " + strings.Repeat("a", maxTagPattern+1): "The regular expression to use for finding the previous tag for a version is invalid: it is longer than 1024 bytes",
		"template: '{% if %}'":                               `Invalid template, line 1, column 1: one name of a value is expected, as in title or commit.reference, not ""`,
		"template: [a]":                                      "The configuration is invalid: unmarshal errors:\n  line 1: cannot unmarshal !!seq into string",
		"- a":                                                "The configuration is invalid: unmarshal errors:\n  line 1: cannot unmarshal !!seq into changelog.file",
		"a: [":                                               "The configuration is invalid: line 1: did not find expected node content",
		"date_format: " + strings.Repeat("d", 101):           `The "date_format" configuration key has more than 100 bytes`,
		"include_groups: [" + strings.Repeat("a,", 21) + "]": `The "include_groups" configuration key has more than 20 groups`,
		"include_groups: a":                                  "The configuration is invalid: unmarshal errors:\n  line 1: cannot unmarshal !!str `a` into []string",
		"# " + strings.Repeat("x", MaxConfig):                "The configuration is larger than 65536 bytes",
	} {
		_, err := ParseConfig([]byte(config))
		if is := Error(""); !errors.As(err, &is) || err.Error() != want {
			t.Errorf("%.60s\ngot  %v\nwant %s", config, err, want)
		}
	}
}

func TestParseConfig_acceptsGroupsAndAliases(t *testing.T) {
	c := configOf(t, "names: &names {added: &news News}\ncategories: *names\ninclude_groups: [acme/team, *news]\n")
	if got := fmt.Sprint(c.Groups, c.categories); got != "[acme/team News] [{added News}]" {
		t.Error(got)
	}
}
