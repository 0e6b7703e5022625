package changelog

import (
	"iter"
	"strings"

	"golang.org/x/mod/semver" // compares without parsing numbers, which have no limit
)

// Version is a semantic version in the form of golang.org/x/mod/semver, with a "v" and all three numbers.
type Version string

// maxVersion is the maximum length of a version, in bytes.
const maxVersion = 255

// ParseVersion reads a version such as "1.2.3-rc.1+build", before which a "v" may stand.
func ParseVersion(text string) (v Version, ok bool) {
	whole := "v" + strings.TrimPrefix(text, "v")
	if len(whole) > maxVersion || !semver.IsValid(whole) || semver.Canonical(whole)+semver.Build(whole) != whole {
		return "", false
	}
	return Version(whole), true
}

// less reports whether a version precedes another one. Build metadata is ignored.
func (v Version) less(other Version) bool { return semver.Compare(string(v), string(other)) < 0 }

// Previous returns the one of the tags that names the highest version below another one. Tags that are not named as the
// configuration says, and those of pre-releases, are passed over.
func (c *Config) Previous(v Version, tags iter.Seq[string]) (tag string, ok bool) {
	var highest Version
	for name := range tags {
		is, stable := c.version(name)
		if stable && is.less(v) && (!ok || highest.less(is)) {
			tag, highest, ok = name, is, true
		}
	}
	return tag, ok
}

// version is the one that a tag names, if that is a stable one.
func (c *Config) version(tag string) (v Version, stable bool) {
	found := c.tags.FindStringSubmatch(tag)
	if found == nil {
		return "", false
	}
	group := func(name string) string {
		if i := c.tags.SubexpIndex(name); i > 0 {
			return found[i]
		}
		return ""
	}
	if group("pre") != "" {
		return "", false
	}
	var numbers []string
	for _, name := range []string{"major", "minor", "patch"} {
		n := group(name)
		if n == "" || strings.Trim(n, "0123456789") != "" {
			return "", false
		}
		if n = strings.TrimLeft(n, "0"); n == "" {
			n = "0"
		}
		numbers = append(numbers, n)
	}
	return ParseVersion(strings.Join(numbers, "."))
}
