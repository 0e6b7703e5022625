package changelog

import (
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, text := range []string{"1.2.3", "v1.2.3", "0.0.0", "1.0.0-rc.1", "1.0.0-0A.is.legal", "1.0.0+20130313144700", "v1.0.0-alpha+001", "99999999999999999999999.999999999999999999.0"} {
		if v, ok := ParseVersion(text); !ok || strings.TrimPrefix(string(v), "v") != strings.TrimPrefix(text, "v") {
			t.Errorf("%s is %s, %t", text, v, ok)
		}
	}
	for _, text := range []string{"", "v", "1", "1.2", "v1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "vv1.2.3", "V1.2.3", "1.2.3 ", "1.2.x", "1.2.3\n", "1.0.0-" + strings.Repeat("a", 255)} {
		if v, ok := ParseVersion(text); ok {
			t.Errorf("%q is taken for %s", text, v)
		}
	}
}

func TestPrevious_returnsNextLowerStableVersion(t *testing.T) {
	for name, tt := range map[string]struct{ config, version, tags, want string }{
		"the one before":            {"", "1.1.1", "v2.0.0 v1.1.0 v1.0.0", "v1.1.0"},
		"not itself":                {"", "1.1.0", "1.1.0 1.0.0", "1.0.0"},
		"not itself with a v":       {"", "v1.1.0", "1.1.0 1.0.0", "1.0.0"},
		"by numbers":                {"", "2.0.0", "v1.9.0 v1.10.0 v1.2.0", "v1.10.0"},
		"none before":               {"", "0.1.0", "0.1.0 1.0.0", ""},
		"no tags":                   {"", "0.1.0", "", ""},
		"pre-releases do not count": {"", "1.1.0", "v1.1.0-rc1 v1.0.0 v1.1.0-rc.2+x", "v1.0.0"},
		"before a pre-release":      {"", "1.1.0-rc2", "v1.1.0-rc1 v1.0.0 v1.1.0", "v1.0.0"},
		"build metadata":            {"", "1.1.0", "v1.0.0+build.1", "v1.0.0+build.1"},
		"other names":               {"", "1.1.0", "release-1.0.0 1.0 v1 latest v0.1.0 v01.0.0", "v0.1.0"},
		"the first of two":          {"", "1.1.0", "1.0.0 v1.0.0", "1.0.0"},
		"other form":                {`tag_regex: '^version-(?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)$'`, "1.1.0", "version-1.0.0 version-1.0 v1.0.5", "version-1.0.0"},
		"other syntax for groups":   {`tag_regex: '(?<major>\d+)-(?<minor>\d+)-(?<patch>\d+)(-(?<pre>rc))?'`, "1.1.0", "1-0-0 1-0-5-rc", "1-0-0"},
		"leading zeros":             {`tag_regex: '^(?<major>\d+)\.(?<minor>\d+)\.(?<patch>\d+)$'`, "2026.10.0", "2026.09.01 2026.10.00 2026.08.20", "2026.09.01"},
		"without a group":           {`tag_regex: '^(?<major>\d+)\.(?<minor>\d+)'`, "1.1.0", "1.0.0", ""},
		"not numbers":               {`tag_regex: '^(?<major>\w+)\.(?<minor>\w*)\.(?<patch>\w+)'`, "1.1.0", "a.0.0 1..0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, ok := ParseVersion(tt.version)
			if !ok {
				t.Fatal("this is no version")
			}
			tags := strings.Fields(tt.tags)
			got, found := configOf(t, tt.config).Previous(v, slices.Values(tags))
			if got != tt.want || found != (tt.want != "") {
				t.Errorf("it is %q (%t), want %q", got, found, tt.want)
			}
		})
	}
}
