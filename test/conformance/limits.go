package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// costly is the number of expensive requests per minute that the server of these specs accepts from a user for a project. It is more than
// any other spec sends.
var costly = map[string]int{"archive": 20, "blob": 2, "changelog": 10, "file": 2}

func limitCostly() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(costly)) {
		all = append(all, fmt.Sprintf("%s=%d", what, costly[what]))
	}
	return "--rate-limit-costly=" + strings.Join(all, ",")
}

// newCostly creates a team whose project has a large file and a version for a changelog. It returns the expensive requests by the name of their
// limit, without the project.
func (d *door) newCostly() (team, map[string]string) {
	GinkgoHelper()
	t, history := d.newTeam(gitlab.PrivateVisibility), newRelease()
	history.Commit(GinkgoTB(), "large", strings.Repeat("0123456789abcde\n", 10<<16+1))
	push(t.project, history)
	history.Git(GinkgoTB(), "push", "--quiet", "--tags", remote(t.project))
	return t, map[string]string{
		"archive": "archive.tar?sha=v1.0.0", "blob": "blobs/" + history.Git(GinkgoTB(), "rev-parse", "main:large"),
		"changelog": "changelog?version=1.1.0", "file": "files/large?ref=main",
	}
}

func (d *door) repository(p *person, project *gitlab.Project, request string) *gitlab.Response {
	GinkgoHelper()
	return send(d.as(p), fmt.Sprintf("GET projects/%d/repository/%s", project.ID, request), "")
}

// expectLimited expects that a request succeeds as often as the server allows, and is refused afterwards.
func (d *door) expectLimited(p *person, project *gitlab.Project, what, request string) {
	GinkgoHelper()
	served, answer := 0, d.repository(p, project, request)
	for ; answer.StatusCode != 429; answer = d.repository(p, project, request) {
		Expect(answer.StatusCode).To(Equal(200), what)
		served++
		// If a minute ends meanwhile, the count starts again.
		Expect(served).To(BeNumerically("<", 10*costly[what]), "nobody counts %s", what)
	}
	Expect(served).To(BeNumerically(">=", costly[what]), what)
	Expect(answered(answer)).To(Equal(`429 {"message":{"error":"This ` + what + ` has been requested too many times. Try again later."}}`))
	Expect(answer.Header.Get("Retry-After")).To(MatchRegexp(`^([1-9]|[1-5]\d|60)$`), what)
}

var _ = throughEachDoor("An expensive request", func(d *door) {
	It("is limited per minute, for each user and each project", d.again(), func() {
		team, requests := d.newCostly()
		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		Expect(slices.Sorted(maps.Keys(requests))).To(Equal(slices.Sorted(maps.Keys(costly))))
		for what, request := range requests {
			d.expectLimited(developer, team.project, what, request)
			Expect(d.repository(maintainer, team.project, request).StatusCode).To(Equal(200), "%s, of another user", what)
			Expect(d.repository(developer, other, request).StatusCode).NotTo(Equal(429), "%s of another project", what)
		}
	})
})

var _ = Describe("An expensive request of a Kubernetes identity that acts as no user", func() {
	It("is counted by the name of the identity", func() {
		team, requests := identities.newCostly()
		identities.expectLimited(operator, team.project, "changelog", requests["changelog"])
		Expect(identities.repository(root, team.project, requests["changelog"]).StatusCode).To(Equal(200))
	})
})
