package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/endpoint/endpointtest"
)

// coverage knows all endpoints, and which of those that the part covers have not succeeded yet.
type coverage struct {
	contract *endpointtest.Contract
	all      []string
	lock     sync.Mutex
	left     map[string]bool
}

// newCoverage reads the endpoints from the document of the API. The contract must come from the same document.
func newCoverage(document []byte, contract *endpointtest.Contract) *coverage {
	GinkgoHelper()
	var described struct {
		Paths map[string]map[string]struct {
			Tags []string `json:"tags"`
		} `json:"paths"`
	}
	Expect(json.Unmarshal(document, &described)).To(Succeed())
	c := &coverage{contract: contract, left: map[string]bool{}}
	for path, methods := range described.Paths {
		for method, o := range methods {
			pattern := strings.ToUpper(method) + " " + path
			if running.covers(o.Tags) {
				c.left[pattern] = true
			}
			c.all = append(c.all, pattern)
		}
	}
	Expect(c.left).NotTo(BeEmpty())
	return c
}

// add records that an endpoint has succeeded.
func (c *coverage) add(method, escaped string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.left, c.contract.Operation(method, escaped))
}

// missing are the endpoints that have not succeeded.
func (c *coverage) missing() []string {
	all := make([]string, 0, len(c.left))
	for pattern := range c.left {
		all = append(all, pattern)
	}
	slices.Sort(all)
	return all
}

// exceptions are the endpoints that need not succeed at a door, with the reason.
var exceptions = map[*door]map[string]string{
	identities: {
		"GET /personal_access_tokens/self":         "a Kubernetes identity is no token",
		"DELETE /personal_access_tokens/self":      "a Kubernetes identity is no token",
		"POST /personal_access_tokens/self/rotate": "a Kubernetes identity is no token",

		"POST /projects/{id}/access_tokens/self/rotate": "a Kubernetes identity is no token",
		"POST /groups/{id}/access_tokens/self/rotate":   "a Kubernetes identity is no token",
	},
}

// refusing are the endpoints that succeed at no door, with the reason.
var refusing = map[string]string{
	"PUT /projects/{id}/issues/{issue_iid}/discussions/{discussion_id}": "a discussion on an issue cannot be resolved",
	"PUT /groups/{id}/epics/{epic_id}/discussions/{discussion_id}":      "a discussion on an epic cannot be resolved",
}

// This is the last check of the suite. It is skipped if only some of the specs have run.
var _ = ReportAfterSuite("every endpoint has succeeded at each door", func(r Report) {
	if !r.SuiteSucceeded || !whole(r) {
		return
	}
	for _, d := range each() {
		missing := slices.DeleteFunc(d.coverage.missing(), func(pattern string) bool {
			_, excepted := exceptions[d][pattern]
			_, refused := refusing[pattern]
			return excepted || refused
		})
		Expect(missing).To(BeEmpty(), d.name)
	}
})
