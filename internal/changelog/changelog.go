// Package changelog makes a section of a changelog of the commits of a release, as a configuration in the repository says, and
// puts it into a file. It reads nothing itself.
package changelog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-strftime" // all directives of date, without dependencies of its own
)

// Error says why there is no changelog, for the person who has asked for it.
type Error string

func (e Error) Error() string { return string(e) }

func errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// Release has the data of a section.
type Release struct {
	// Version is shown as it is.
	Version string
	// Date is shown in the zone that it is in.
	Date   time.Time
	Config *Config
	// Entries are in the order in which they are shown in their categories.
	Entries []Entry
}

// Entry is a commit that is worth mentioning.
type Entry struct {
	// Category is the value of the trailer. The configuration says what title it goes under.
	Category string
	// Title is the title of the commit.
	Title string
	// Reference is as in "group/project@<id>", and WebURL where the commit is shown.
	Reference, WebURL string
	Trailers          map[string]string
	// Author is nil if no user has the address in the commit.
	Author *Author
	// MergeRequest is nil for a commit that came without one.
	MergeRequest *MergeRequest
}

// Author is the user who has written a commit.
type Author struct {
	// Reference is as in "@username".
	Reference string
	// Contributor says that the author is not a member of the project. Credit says whether they are mentioned.
	Contributor, Credit bool
}

// MergeRequest is the one that has brought a commit.
type MergeRequest struct {
	// Reference is as in "group/project!1", and WebURL where it is shown.
	Reference, WebURL string
}

// Section is the section of a changelog about one version.
type Section struct {
	Version Version
	// Text ends in a single line break. Its first line is the heading.
	Text string
}

// Section returns the section: a heading, and the output of the template for the entries. The error is an Error if the version is invalid
// or a limit is exceeded.
func (r Release) Section() (s Section, err error) {
	version, ok := ParseVersion(r.Version)
	if !ok {
		return s, errorf("%q is not a semantic version", r.Version)
	}
	body, err := r.Config.template.render(data{r.categories()})
	if err != nil {
		return s, err
	}
	// A heading is one line.
	date := strings.NewReplacer("\r", " ", "\n", " ").Replace(strftime.Format(r.Config.dateFormat, r.Date))
	return Section{version, fmt.Sprintf("## %s (%s)\n\n%s\n", r.Version, date, strings.TrimSpace(body))}, nil
}

// categories returns the categories that have entries, in the order of the configuration, and then of the entries.
func (r Release) categories() (all []entity) {
	titles := map[string]*category{}
	var order []*category
	under := func(title string) *category {
		c := titles[title]
		if c == nil {
			c = &category{title: title}
			titles[title] = c
			order = append(order, c)
		}
		return c
	}
	for _, c := range r.Config.categories {
		under(c.title)
	}
	for i := range r.Entries {
		c := under(r.Config.title(r.Entries[i].Category))
		c.entries = append(c.entries, entry{&r.Entries[i]})
	}
	for _, c := range slices.DeleteFunc(order, func(c *category) bool { return len(c.entries) == 0 }) {
		all = append(all, c)
	}
	return all
}
