package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

var _ = throughEachDoor("CI configurations", func(d *door) {
	It("are checked, those of a project and those that a request sends", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := gittest.New(GinkgoTB(), "sha1")
		c.Commit(GinkgoTB(), "ci/base.yml", ".base: {script: make}\n")
		c.Commit(GinkgoTB(), ".gitlab-ci.yml", "include: ci/base.yml\ntest: {extends: .base}\n")
		push(team.project, c)

		got, r, err := d.as(developer).Validate.ProjectLint(team.project.ID, &gitlab.ProjectLintOptions{
			ContentRef: gitlab.Ptr("main"), DryRun: gitlab.Ptr(true), DryRunRef: gitlab.Ptr("main"), IncludeJobs: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(got.Errors).To(BeEmpty())
		Expect(got.Valid).To(BeTrue())
		Expect(got.MergedYaml).To(Equal("---\n.base:\n    script: make\ntest:\n    script: make\n"))
		Expect(got.Includes).To(HaveLen(1))
		Expect(got.Includes[0]).To(And(HaveField("Type", "local"), HaveField("Location", "ci/base.yml"),
			HaveField("ContextProject", team.project.PathWithNamespace), HaveField("ContextSHA", c.Git(GinkgoTB(), "rev-parse", "main"))))

		content := func(p *person, text string) (*gitlab.ProjectLintResult, *gitlab.Response, error) {
			return d.as(p).Validate.ProjectNamespaceLint(team.project.PathWithNamespace, &gitlab.ProjectNamespaceLintOptions{
				Content: &text, DryRun: gitlab.Ptr(true), Ref: gitlab.Ptr("main"), IncludeJobs: gitlab.Ptr(true),
			})
		}
		got, r, err = content(developer, "test: {script: make, colour: red}")
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(got.Valid).To(BeFalse())
		Expect(got.Errors).To(ConsistOf(HavePrefix(".forgeplane-ci.yml:1: test:colour: unknown keyword")))
		_, r, err = content(guest, "test: {script: make}")
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))
	})
})
