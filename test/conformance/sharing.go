package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Projects and groups", func(d *door) {
	// invited returns a group of the outsider, who is its only member.
	invited := func() *gitlab.Group {
		GinkgoHelper()
		return d.newGroup(outsider, nil, gitlab.PublicVisibility)
	}

	It("are shared with groups, project by project", func() {
		team, friends := d.newTeam(gitlab.PrivateVisibility), invited()
		c, theirs := d.as(maintainer), d.as(outsider)
		_, _, err := theirs.Projects.GetProject(team.project.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))

		expires := day(30)
		r, err := c.Projects.ShareProjectWithGroup(team.project.PathWithNamespace, &gitlab.ShareWithGroupOptions{
			GroupID: &friends.ID, GroupAccess: gitlab.Ptr(gitlab.DeveloperPermissions), ExpiresAt: gitlab.Ptr(expires.String()),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		for _, p := range []*person{maintainer, outsider} {
			got, _, err := d.as(p).Projects.GetProject(team.project.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.SharedWithGroups).To(HaveLen(1))
			Expect(got.SharedWithGroups[0].GroupID).To(Equal(friends.ID))
			Expect(got.SharedWithGroups[0].GroupName).To(Equal(friends.Name))
			Expect(got.SharedWithGroups[0].GroupFullPath).To(Equal(friends.FullPath))
			Expect(got.SharedWithGroups[0].GroupAccessLevel).To(BeEquivalentTo(gitlab.DeveloperPermissions))
		}
		member, _, err := c.ProjectMembers.GetInheritedProjectMember(team.project.ID, outsider.id)
		Expect(err).NotTo(HaveOccurred())
		Expect(member.AccessLevel).To(Equal(gitlab.DeveloperPermissions))
		Expect(member.ExpiresAt).To(Equal(&expires))

		shared, _, err := theirs.Groups.ListGroupProjects(friends.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(shared).To(ConsistOf(HaveField("ID", team.project.ID)))
		direct, _, err := theirs.Groups.ListGroupProjects(friends.ID, &gitlab.ListGroupProjectsOptions{WithShared: gitlab.Ptr(false)})
		Expect(err).NotTo(HaveOccurred())
		Expect(direct).To(BeEmpty())

		protected, _, err := c.ProtectedBranches.ProtectRepositoryBranches(team.project.ID, &gitlab.ProtectRepositoryBranchesOptions{
			Name: gitlab.Ptr("release/*"), AllowedToPush: &[]*gitlab.BranchPermissionOptions{{GroupID: &friends.ID}},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(protected.PushAccessLevels).To(ConsistOf(HaveField("GroupID", friends.ID)))

		_, err = c.Projects.ShareProjectWithGroup(team.project.ID, &gitlab.ShareWithGroupOptions{
			GroupID: &friends.ID, GroupAccess: gitlab.Ptr(gitlab.GuestPermissions),
		})
		Expect(err).To(MatchError(ContainSubstring("Group already shared with this group")))
		r, err = c.Projects.DeleteSharedProjectFromGroup(team.project.ID, friends.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		r, err = c.Projects.DeleteSharedProjectFromGroup(team.project.ID, friends.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Group Link Not Found"}`))
		_, _, err = theirs.Projects.GetProject(team.project.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})

	It("are shared with groups, with everything below a group", func() {
		team, friends := d.newTeam(gitlab.PrivateVisibility), invited()
		c, theirs := d.as(owner), d.as(outsider)
		shared, r, err := c.Groups.ShareGroupWithGroup(team.group.ID, &gitlab.ShareGroupWithGroupOptions{
			GroupID: &friends.ID, GroupAccess: gitlab.Ptr(gitlab.ReporterPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(shared.ID).To(Equal(team.group.ID))
		Expect(shared.SharedWithGroups).To(ConsistOf(And(
			HaveField("GroupID", friends.ID), HaveField("GroupFullPath", friends.FullPath),
			HaveField("GroupAccessLevel", BeEquivalentTo(gitlab.ReporterPermissions)), HaveField("ExpiresAt", BeNil()))))
		got, _, err := theirs.Groups.GetGroup(team.group.FullPath, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.SharedWithGroups).To(HaveLen(1))
		project, _, err := theirs.Projects.GetProject(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(project.SharedWithGroups).To(BeEmpty())
		Expect(project.Permissions.GroupAccess.AccessLevel).To(Equal(gitlab.ReporterPermissions))
		_, _, err = theirs.Labels.CreateLabel(team.project.ID, &gitlab.CreateLabelOptions{Name: gitlab.Ptr("shared"), Color: gitlab.Ptr("#fff")})
		Expect(err).NotTo(HaveOccurred())

		r, err = c.Groups.UnshareGroupFromGroup(team.group.FullPath, friends.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, _, err = theirs.Groups.GetGroup(team.group.FullPath, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})
})
