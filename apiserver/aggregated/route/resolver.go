// Package route finds the endpoint that a path means after kube-apiserver has passed it on.
package route

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Limits of a path. A path that exceeds them matches no endpoint.
const (
	maxSegments = 128
	// maxNesting is the maximum number of segments of a full path: groups, and a project in them.
	maxNesting = 21
)

// Kind is the kind of object that a full path names.
type Kind int

// The kinds of things that have a full path.
const (
	NoKind Kind = iota
	Project
	Group
)

// Known returns the kind of the object that has a full path at the moment, or NoKind.
type Known func(ctx context.Context, fullPath string) Kind

// roots are the collections whose items are named by a full path as well as by an id.
var roots = map[string]Kind{"projects": Project, "groups": Group, "namespaces": Group}

// Pattern is the method and path of an endpoint, with parameters in braces.
type Pattern struct {
	Method, Path string
	// Polls is true if requests to the endpoint can wait for long.
	Polls bool
}

// Resolver finds the endpoint of a path whose slashes are no longer encoded: kube-apiserver decodes a path once, so that
// projects/group%2Fproject/labels arrives as projects/group/project/labels.
type Resolver struct {
	known  Known
	routes []route
}

// NewResolver returns a resolver for the endpoints of a table.
func NewResolver(known Known, all []Pattern) *Resolver {
	r := &Resolver{known: known}
	for _, one := range all {
		r.routes = append(r.routes, newRoute(one))
	}
	slices.SortStableFunc(r.routes, route.compare)
	return r
}

// Resolve returns the escaped path of a request in the form that has one segment for each parameter, and whether the request can wait for
// long. The argument is the escaped path as it arrived, below the path of the API version. Resolve removes api/v4, which clients put in front
// of each path. If no endpoint has the path, it returns the path without empty segments.
//
// The project or group is the longest known path that an endpoint follows. The last parameter of a path gets the rest of it, and a parameter
// before a word gets everything up to that word. Digits are an id. If an id is encoded twice, and so arrives with %2F in it, it stays as it
// is, and every other parameter counts as encoded twice.
func (r *Resolver) Resolve(ctx context.Context, method, escaped string) (path string, polls bool) {
	if method == http.MethodHead {
		method = http.MethodGet // every endpoint for GET serves HEAD
	}
	values := split(escaped)
	if len(values) > 1 && values[0] == "api" && values[1] == "v4" {
		values = values[2:]
	}
	if len(values) == 0 || len(values) > maxSegments {
		return join(values), false
	}
	for _, t := range r.tries(ctx, method, values) {
		for _, one := range r.routes {
			if t.method != "" && one.method != t.method {
				continue
			}
			if lengths, ok := one.match(values, t.idLength); ok {
				return join(regroup(values, lengths)), one.polls && one.method == method
			}
		}
	}
	return join(values), false
}

// try is a way to read a path: for a method, or for any if that is empty, and with a number of segments in the id.
type try struct {
	method   string
	idLength int
}

// anyLength is the idLength of a try in which the rest of the path determines the length of the id.
const anyLength = 0

// tries returns the ways to read a path, the best first. A path whose method does not fit is found all the same, so that
// the answer is 405.
func (r *Resolver) tries(ctx context.Context, method string, values []string) []try {
	kind, ok := roots[values[0]]
	if !ok || len(values) == 1 {
		return []try{{method, anyLength}, {"", anyLength}}
	}
	if id := values[1]; strings.Trim(id, "0123456789") == "" || strings.Contains(unescape(id), "/") {
		decodeTwice(values)
		return []try{{method, 1}, {"", 1}}
	}
	var tries []try
	for n := min(len(values)-1, maxNesting); n > 0; n-- {
		if r.known(ctx, strings.Join(values[1:1+n], "/")) == kind {
			tries = append(tries, try{method, n})
		}
	}
	// Any other path is resolved as if nothing had that name, so the response does not reveal objects that the caller cannot see.
	return append(tries, try{"", anyLength})
}

// decodeTwice decodes every segment once more when the id shows that the path was encoded twice.
func decodeTwice(values []string) {
	if unescape(values[1]) == values[1] {
		return
	}
	for i, v := range values {
		values[i] = unescape(v)
	}
}

// route is a path in its segments; a parameter is empty.
type route struct {
	method   string
	segments []string
	words    int
	polls    bool
}

func newRoute(of Pattern) route {
	t := route{method: of.Method, segments: split(of.Path), polls: of.Polls}
	for i, s := range t.segments {
		if strings.HasPrefix(s, "{") {
			t.segments[i] = ""
		} else {
			t.words++
		}
	}
	return t
}

// compare sorts more specific routes first: routes with more words, then with more segments, then with a word where others have a parameter.
func (t route) compare(other route) int {
	if t.words != other.words {
		return other.words - t.words
	}
	if len(t.segments) != len(other.segments) {
		return len(other.segments) - len(t.segments)
	}
	return -slices.CompareFunc(t.segments, other.segments, func(a, b string) int {
		return min(len(a), 1) - min(len(b), 1)
	})
}

// match returns the number of values that each segment takes. If the second segment is an id, it takes n values.
func (t route) match(values []string, n int) (lengths []int, ok bool) {
	if len(t.segments) > len(values) {
		return nil, false
	}
	lengths = make([]int, len(t.segments))
	at, taken := 0, 0
	grows, begins := -1, 0 // the parameter that may still take more, and its first value
	for taken < len(values) {
		switch {
		case at == 1 && at < len(t.segments) && n != anyLength && t.segments[at] == "":
			if taken+n > len(values) {
				return nil, false
			}
			lengths[at], taken = n, taken+n
			at++
		case at < len(t.segments) && t.segments[at] == "":
			grows, begins = at, taken
			lengths[at] = 1
			at, taken = at+1, taken+1
		case at < len(t.segments) && t.segments[at] == values[taken]:
			lengths[at] = 1
			at, taken = at+1, taken+1
		case grows >= 0:
			lengths[grows]++
			at, taken = grows+1, begins+lengths[grows]
		default:
			return nil, false
		}
	}
	return lengths, at == len(t.segments)
}

// regroup joins the values that belong to one segment.
func regroup(values []string, lengths []int) []string {
	joined := make([]string, 0, len(lengths))
	for _, n := range lengths {
		joined = append(joined, strings.Join(values[:n], "/"))
		values = values[n:]
	}
	return joined
}

// split returns the segments of an escaped path, decoded, without empty ones.
func split(escaped string) []string {
	var values []string
	for s := range strings.SplitSeq(escaped, "/") {
		if s != "" {
			values = append(values, unescape(s))
		}
	}
	return values
}

// join is the escaped path of segments. Dots alone are escaped as well: they are names here, and no way up.
func join(values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteByte('/')
		if v == "." || v == ".." {
			b.WriteString(strings.Repeat("%2E", len(v)))
		} else {
			b.WriteString(url.PathEscape(v))
		}
	}
	return b.String()
}

// unescape decodes a segment. It returns an invalid encoding unchanged.
func unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}
