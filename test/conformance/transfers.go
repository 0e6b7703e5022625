package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Transfers", func(d *door) {
	It("move projects to other groups, and keep their ids", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		for _, to := range []struct {
			namespace any
			path      string
		}{{below.ID, below.FullPath}, {team.group.FullPath, team.group.FullPath}} {
			moved, _, err := d.as(owner).Projects.TransferProject(team.project.ID, &gitlab.TransferProjectOptions{Namespace: to.namespace})
			Expect(err).NotTo(HaveOccurred())
			Expect(moved.PathWithNamespace).To(Equal(to.path + "/" + team.project.Path))
			got, _, err := d.as(developer).Projects.GetProject(moved.PathWithNamespace, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.ID).To(Equal(team.project.ID))
		}
		_, r, err := d.as(owner).Projects.TransferProject(team.project.ID, &gitlab.TransferProjectOptions{Namespace: team.group.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"Failed to transfer project: Project is already in this namespace."}`))
		_, r, err = d.as(maintainer).Projects.TransferProject(team.project.ID, &gitlab.TransferProjectOptions{Namespace: below.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})

	It("lead only to groups that the caller can use", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		r := send(d.as(owner), fmt.Sprintf("GET projects/%d/transfer_locations?search=%s", team.project.ID, below.Path), "")
		Expect(answered(r)).To(And(HavePrefix("200 "), ContainSubstring(fmt.Sprintf(`"full_path":%q`, below.FullPath))))
		r = send(d.as(owner), fmt.Sprintf("GET projects/%d/transfer_locations?search=%s", team.project.ID, team.group.Path+"/nothing"), "")
		Expect(answered(r)).To(Equal("200 []"))
		locations, _, err := d.as(owner).Groups.ListTransferLocations(below.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(locations).NotTo(ContainElement(HaveField("ID", BeElementOf(below.ID, team.group.ID))))
	})

	It("move groups with their projects, to the root and back", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		below := d.newGroup(owner, team.group, gitlab.PublicVisibility)
		p := d.newProject(below.ID, gitlab.PublicVisibility)
		for _, to := range []struct {
			parent *int64
			path   string
		}{{nil, below.Path}, {&team.group.ID, below.FullPath}} {
			moved, r, err := d.as(owner).Groups.TransferSubGroup(below.ID, &gitlab.TransferSubGroupOptions{GroupID: to.parent})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(moved.FullPath).To(Equal(to.path))
			got, _, err := d.as(owner).Projects.GetProject(to.path+"/"+p.Path, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.ID).To(Equal(p.ID))
		}
		_, r, err := d.as(owner).Groups.TransferSubGroup(team.group.ID, &gitlab.TransferSubGroupOptions{GroupID: &below.ID})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"Transfer failed: Cannot transfer group to one of its subgroup."}`))
	})
})
