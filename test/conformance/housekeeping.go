package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Housekeeping", func(d *door) {
	It("is started by maintainers", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			r, err := d.as(maintainer).Projects.StartHousekeepingProject(id)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("201"))
		}
		r, err := d.as(developer).Projects.StartHousekeepingProject(team.project.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})
})
