package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Projects with topics", func(d *door) {
	It("are found by them", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		topic := fresh("topic")
		p, _, err := d.as(maintainer).Projects.EditProject(team.project.ID, &gitlab.EditProjectOptions{Topics: &[]string{topic, "Go"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Topics).To(HaveExactElements(topic, "Go"))
		for filter, found := range map[string]bool{topic: true, topic + ",go": true, topic + ",rust": false} {
			all, _, err := d.as(guest).Projects.ListProjects(&gitlab.ListProjectsOptions{Topic: &filter})
			Expect(err).NotTo(HaveOccurred())
			if found {
				Expect(all).To(HaveExactElements(HaveField("ID", p.ID)), filter)
			} else {
				Expect(all).To(BeEmpty(), filter)
			}
		}
	})
})

var _ = throughEachDoor("Statistics of projects", func(d *door) {
	It("count commits and bytes for Reporters, and the activity follows commits", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		_, _, err := d.as(maintainer).Commits.CreateCommit(team.project.ID, &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Begin"),
			Actions: []*gitlab.CommitActionOptions{{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("README"), Content: gitlab.Ptr("hello")}},
		})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			p, _, err := d.as(developer).Projects.GetProject(team.project.ID, &gitlab.GetProjectOptions{Statistics: gitlab.Ptr(true)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Statistics.CommitCount).To(BeEquivalentTo(1))
			g.Expect(p.Statistics.RepositorySize).To(BeNumerically(">", 0))
			g.Expect(p.Statistics.StorageSize).To(Equal(p.Statistics.RepositorySize))
			g.Expect(*p.LastActivityAt).To(BeTemporally(">=", *p.CreatedAt))
		}).WithPolling(polling).Should(Succeed())
		p, _, err := d.as(guest).Projects.GetProject(team.project.ID, &gitlab.GetProjectOptions{Statistics: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Statistics).To(BeNil())
	})
})
