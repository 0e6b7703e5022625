// Package badge fills in the placeholders of badges, for the controller and the REST API alike, and says which URLs a badge
// may have.
package badge

import (
	"errors"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
)

// MaxURL is the maximum number of characters in a declared URL.
const MaxURL = 2048

// maxRendered is the maximum number of characters in a rendered URL, as in the schema of the status.
const maxRendered = 8192

// Errors of Check.
var (
	// ErrBlank says that there is no URL.
	ErrBlank = errors.New("can't be blank")
	// ErrScheme says that the scheme of the URL is neither http nor https.
	ErrScheme = errors.New("is blocked: Only allowed schemes are http, https")
	// ErrMalformed says that it has no host, or a character that no URL has.
	ErrMalformed = errors.New("must be a valid URL")
	// ErrCredentials says that it has a user or a password in it.
	ErrCredentials = errors.New("cannot hold credentials")
	// ErrLong says that it has more than MaxURL characters.
	ErrLong = errors.New("is too long (maximum is " + strconv.Itoa(MaxURL) + " characters)")
)

// The rules of the schema, which hold with placeholders anywhere in the URL.
var (
	schemes     = regexp.MustCompile(`^[hH][tT]{2}[pP][sS]?:`)
	hosts       = regexp.MustCompile(`^[^:]+://[^/?#:]`)
	never       = regexp.MustCompile("[\\x00-\\x20\\x7f<>\"\\\\^`]")
	credentials = regexp.MustCompile(`^[^:]+://[^/?#]*@`)
)

// Check returns the problem of a URL before it is declared. It returns an error of this package.
func Check(url string) error {
	switch {
	case strings.TrimSpace(url) == "":
		return ErrBlank
	case len([]rune(url)) > MaxURL:
		return ErrLong
	case !schemes.MatchString(url):
		return ErrScheme
	case never.MatchString(url) || !hosts.MatchString(url):
		return ErrMalformed
	case credentials.MatchString(url):
		return ErrCredentials
	default:
		return nil
	}
}

// Values are the values of placeholders by name. A placeholder that is missing or empty has no value.
type Values map[string]value

// value is text, and how it is written into a URL.
type value struct {
	text string
	// path keeps the slashes of a text that is made of segments.
	path bool
}

func segments(text string) value { return value{text: text, path: true} }

// NeedHead reports whether any of the URLs has a placeholder that stands for what HEAD of the repository is.
func NeedHead(urls ...string) bool {
	for _, url := range urls {
		if strings.Contains(url, "%{commit_sha}") || strings.Contains(url, "%{default_branch}") {
			return true
		}
	}
	return false
}

// ValuesOf returns the values of a project, or what its projects have in common for the scope of a group.
func ValuesOf(s catalog.Scope) Values {
	v := Values{}
	root := s.Groups[len(s.Groups)-1]
	if _, personal := root.Labels[v1alpha1.LabelPersonal]; !personal {
		v["group_name"] = value{text: root.Spec.Path}
	}
	p := s.Project
	if p == nil {
		return v
	}
	v["project_path"] = segments(s.Path())
	v["project_namespace"] = segments(catalog.FullPath(s.Groups))
	v["project_title"] = value{text: catalog.Title(p.Spec.Name, p.Spec.Path)}
	v["project_name"] = value{text: p.Spec.Path}
	if p.RESTID() != 0 {
		v["project_id"] = value{text: strconv.FormatInt(p.RESTID(), 10)}
	}
	v["default_branch"] = segments(catalog.DefaultBranch(p))
	v["commit_sha"] = value{text: p.Status.HeadCommit}
	return v
}

// WithoutCommit returns the values for callers who cannot read the repository. They get the default branch, which is a setting of the project,
// but not the commit, which is content.
func (v Values) WithoutCommit() Values {
	v = maps.Clone(v)
	delete(v, "commit_sha")
	return v
}

var placeholder = regexp.MustCompile(`%\{([a-z_]+)\}`)

// Render fills in the placeholders of a URL. Placeholders that are unknown or have no value remain unchanged, and so does the whole URL if
// the result would be too long to be useful.
//
// A value never ends the part of the URL that contains it: characters with a meaning in URLs are percent-encoded. In the host, where that
// is not possible, a value is filled in only if it consists of letters, digits, dots and hyphens. So the scheme is always the declared one,
// and so is the host, unless it contains placeholders.
func Render(url string, v Values) string {
	authority := authorityEnd(url)
	var b strings.Builder
	last := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(url, -1) {
		b.WriteString(url[last:at[0]])
		last = at[1]
		if text, ok := v[url[at[2]:at[3]]].in(at[0] < authority); ok {
			b.WriteString(text)
		} else {
			b.WriteString(url[at[0]:at[1]])
		}
		if b.Len() > maxRendered {
			return url
		}
	}
	b.WriteString(url[last:])
	if b.Len() > maxRendered {
		return url
	}
	return b.String()
}

// authorityEnd returns the end of the host and port in a URL.
func authorityEnd(url string) int {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		return len(url)
	}
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		return len(url) - len(rest) + end
	}
	return len(url)
}

var hostname = regexp.MustCompile(`^[a-zA-Z0-9.-]+$`)

// in returns the value in the form for the authority of a URL, or for the part after it. It reports false if the value must not be filled
// in.
func (v value) in(authority bool) (string, bool) {
	switch {
	case v.text == "", v.text == ".", v.text == "..": // The last two would lead elsewhere.
		return "", false
	case authority:
		return v.text, hostname.MatchString(v.text)
	default:
		return v.escape(), true
	}
}

// escape writes everything but unreserved characters, and the slashes between segments, with a percent sign: for the path, the
// query and the fragment alike.
func (v value) escape() string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(v.text) {
		switch c := v.text[i]; {
		case unreserved(c), v.path && c == '/':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// unreserved reports whether a character means nothing in a URL (RFC 3986, section 2.3).
func unreserved(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	default:
		return strings.IndexByte("-._~", c) >= 0
	}
}
