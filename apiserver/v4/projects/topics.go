package projects

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/apiserver/endpoint"
)

// Limits of topics.
const (
	maxTopics = 50
	maxTopic  = 255
)

var topics = regexp.MustCompile(`^[^\x00-\x20,\x7f]([^\x00-\x1f,\x7f]*[^\x00-\x20,\x7f])?$`)

// split splits a list at its commas.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return clean(strings.Split(list, ","))
}

// clean trims topics, and removes empty ones and those that differ from an earlier one only in case.
func clean(sent []string) (all []string) {
	for _, t := range sent {
		t = strings.TrimSpace(t)
		if t != "" && !slices.ContainsFunc(all, func(known string) bool { return strings.EqualFold(known, t) }) {
			all = append(all, t)
		}
	}
	return all
}

// checkTopics returns the validation errors of topics.
func checkTopics(a *endpoint.Attributes, all []string) {
	if len(all) > maxTopics {
		a.Refuse("topics", fmt.Sprintf("are too many (maximum is %d)", maxTopics))
	}
	for _, t := range all {
		if a.Text("topics", t, maxTopic) && !topics.MatchString(t) {
			a.Refuse("topics", "can contain neither commas nor control characters")
		}
	}
}
