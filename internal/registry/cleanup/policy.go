// Package cleanup deletes the tags of container repositories that a policy selects ("Bulk tag deletion" of the core interface document).
package cleanup

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/internal/pattern"
)

// Interval is the time from the beginning of one cleanup of a repository to that of the next one, at least.
const Interval = time.Hour

// latest is the tag that no cleanup removes.
const latest = "latest"

// ErrExpression says that an expression is malformed.
var ErrExpression = errors.New("it must be a regular expression in RE2 syntax")

// Policy selects the tags that a cleanup deletes.
type Policy struct {
	// Delete matches the names to delete, and Keep names to keep nevertheless; it may be nil. Both come from Names.
	Delete, Keep *regexp.Regexp
	// KeepN is the number of the newest of these tags to keep. 0 or less keeps none.
	KeepN int64
	// OlderThan spares tags that are not older; it may be nil.
	OlderThan *Span
}

// Names compiles an expression in RE2 syntax so that it matches whole names. The error is ErrExpression, also if the expression is too large.
func Names(expression string) (*regexp.Regexp, error) {
	whole, err := pattern.Whole(expression)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return whole, nil
}

// Tag is a tag with what a policy decides by.
type Tag struct {
	Name   string
	Digest digest.Digest
	// Created is the time at which the image was made; the zero time if the image does not say it.
	Created time.Time
}

// Matches reports whether a policy may delete a tag, by its name.
func (p *Policy) Matches(name string) bool {
	return name != latest && p.Delete.MatchString(name) && (p.Keep == nil || !p.Keep.MatchString(name))
}

// Dated reports whether a policy needs the times of tags.
func (p *Policy) Dated() bool { return p.KeepN > 0 || p.OlderThan != nil }

// Select returns the tags that the policy deletes at a time, the newest first. Tags without a time count as made now. Of tags with equal times,
// the last in the order of names is the newest.
func (p *Policy) Select(tags []Tag, now time.Time) []Tag {
	var selected []Tag
	for _, t := range tags {
		if !p.Matches(t.Name) {
			continue
		}
		if t.Created.IsZero() {
			t.Created = now
		}
		selected = append(selected, t)
	}
	slices.SortFunc(selected, func(a, b Tag) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
	})
	selected = selected[min(max(p.KeepN, 0), int64(len(selected))):]
	if p.OlderThan == nil {
		return selected
	}
	limit := p.OlderThan.Before(now)
	return slices.DeleteFunc(selected, func(t Tag) bool { return !t.Created.Before(limit) })
}
