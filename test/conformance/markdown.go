package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Markdown", func(d *door) {
	It("is rendered, for a project that the caller sees", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		render := func(p *person) (*gitlab.Markdown, *gitlab.Response, error) {
			return d.as(p).Markdown.Render(&gitlab.RenderOptions{
				Text: gitlab.Ptr("**Ünï** <script>x</script>"), GitlabFlavouredMarkdown: gitlab.Ptr(true), Project: &team.project.PathWithNamespace,
			})
		}
		got, r, err := render(guest)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(got.HTML).To(And(ContainSubstring("<strong>Ünï</strong>"), Not(ContainSubstring("script"))))
		_, r, err = render(outsider)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))
	})
})
