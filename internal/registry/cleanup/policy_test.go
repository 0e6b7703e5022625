package cleanup_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/registry/cleanup"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// policy returns a policy. An empty keep or olderThan stands for none.
func policy(t *testing.T, remove, keep string, keepN int64, olderThan string) *cleanup.Policy {
	t.Helper()
	p := &cleanup.Policy{KeepN: keepN}
	var err error
	if p.Delete, err = cleanup.Names(remove); err != nil {
		t.Fatal(err)
	}
	if keep != "" {
		if p.Keep, err = cleanup.Names(keep); err != nil {
			t.Fatal(err)
		}
	}
	if olderThan != "" {
		span, err := cleanup.ParseSpan(olderThan)
		if err != nil {
			t.Fatal(err)
		}
		p.OlderThan = &span
	}
	return p
}

// aged returns tags that were made some hours ago. An age below 0 stands for a tag without a time.
func aged(ages map[string]int) (tags []cleanup.Tag) {
	for name, hours := range ages {
		t := cleanup.Tag{Name: name}
		if hours >= 0 {
			t.Created = noon.Add(-time.Duration(hours) * time.Hour)
		}
		tags = append(tags, t)
	}
	return tags
}

func names(tags []cleanup.Tag) []string {
	all := []string{}
	for _, t := range tags {
		all = append(all, t.Name)
	}
	slices.Sort(all)
	return all
}

func TestSelect_followsRules(t *testing.T) {
	for title, tt := range map[string]struct {
		remove, keep, older string
		keepN               int64
		tags                map[string]int
		want                []string
	}{
		"all names":                      {remove: ".*", tags: map[string]int{"a": 1, "b": 2}, want: []string{"a", "b"}},
		"the whole name must match":      {remove: "v1", tags: map[string]int{"v1": 1, "v10": 1, "av1": 1}, want: []string{"v1"}},
		"alternatives are whole names":   {remove: "a|b", tags: map[string]int{"a": 1, "b": 1, "ab": 1, "ba": 1}, want: []string{"a", "b"}},
		"flags stay within":              {remove: "(?i)rc.*", tags: map[string]int{"RC1": 1, "rc2": 1, "v1": 1}, want: []string{"RC1", "rc2"}},
		"latest stays":                   {remove: ".*", tags: map[string]int{"latest": 9, "later": 1}, want: []string{"later"}},
		"latest by its name":             {remove: "latest", tags: map[string]int{"latest": 9}, want: []string{}},
		"latest is not among the newest": {remove: ".*", keepN: 1, tags: map[string]int{"latest": 0, "a": 1, "b": 2}, want: []string{"b"}},
		"names to keep":                  {remove: "v.*", keep: `v\d+`, tags: map[string]int{"v1": 1, "v1-rc": 1}, want: []string{"v1-rc"}},
		"names to keep match whole":      {remove: ".*", keep: "v", tags: map[string]int{"v1": 1, "v": 1}, want: []string{"v1"}},
		"everything on both sides":       {remove: ".*", keep: ".*", tags: map[string]int{"a": 1, "b": 2}, want: []string{}},
		"newest of the matching":         {remove: "v.*", keepN: 2, tags: map[string]int{"x": 0, "v1": 3, "v2": 2, "v3": 1}, want: []string{"v1"}},
		"kept names are not counted":     {remove: "v.*", keep: "v3", keepN: 1, tags: map[string]int{"v1": 3, "v2": 2, "v3": 1}, want: []string{"v1"}},
		"as many as there are":           {remove: ".*", keepN: 2, tags: map[string]int{"a": 1, "b": 2}, want: []string{}},
		"more than there are":            {remove: ".*", keepN: 1 << 40, tags: map[string]int{"a": 1}, want: []string{}},
		"none to keep":                   {remove: ".*", keepN: 0, tags: map[string]int{"a": 1}, want: []string{"a"}},
		"less than none to keep":         {remove: ".*", keepN: -3, tags: map[string]int{"a": 1}, want: []string{"a"}},
		"equal times":                    {remove: ".*", keepN: 1, tags: map[string]int{"a": 1, "c": 1, "b": 1}, want: []string{"a", "b"}},
		"older ones":                     {remove: ".*", older: "1d", tags: map[string]int{"a": 23, "b": 24, "c": 25}, want: []string{"c"}},
		"age after the newest":           {remove: ".*", keepN: 1, older: "2h", tags: map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}, want: []string{"c", "d"}},
		"without a time: not old":        {remove: ".*", older: "1h", tags: map[string]int{"a": -1, "b": 2}, want: []string{"b"}},
		"without a time: the newest":     {remove: ".*", keepN: 1, tags: map[string]int{"a": -1, "b": 0}, want: []string{"a"}},
		"without a time: deleted":        {remove: ".*", tags: map[string]int{"a": -1}, want: []string{"a"}},
		"no tags":                        {remove: ".*", keepN: 1, older: "1h", want: []string{}},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(names(policy(t, tt.remove, tt.keep, tt.keepN, tt.older).Select(aged(tt.tags), noon))).To(Equal(tt.want))
		})
	}
}

func TestNames_refusesOtherSyntax(t *testing.T) {
	for _, malformed := range []string{"(", "a)(b", "[", "*", `(?<name`, `a(?=b)`, `(a)\1`, "a{1001}", string([]byte{0xff})} {
		if _, err := cleanup.Names(malformed); !errors.Is(err, cleanup.ErrExpression) {
			t.Errorf("%q: the error is %v", malformed, err)
		}
	}
}
