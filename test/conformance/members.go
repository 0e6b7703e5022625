package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Members of a project", func(d *door) {
	It("are added, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		u := d.newUser(fresh("member"))
		c := d.as(maintainer).ProjectMembers
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			expires := day(30)
			added, r, err := c.AddProjectMember(id, &gitlab.AddProjectMemberOptions{
				UserID: u.ID, AccessLevel: gitlab.Ptr(gitlab.DeveloperPermissions), ExpiresAt: gitlab.Ptr(expires.String()),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(added.ID).To(Equal(u.ID))
			Expect(added.Username).To(Equal(u.Username))
			Expect(added.Name).To(Equal(u.Name))
			Expect(added.State).To(Equal("active"))
			Expect(added.WebURL).To(Equal(u.WebURL))
			Expect(added.AccessLevel).To(Equal(gitlab.DeveloperPermissions))
			Expect(added.ExpiresAt).To(Equal(&expires))
			Expect(added.CreatedAt.IsZero()).To(BeFalse())

			got, _, err := c.GetProjectMember(id, u.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(added))
			changed, _, err := c.EditProjectMember(id, u.ID, &gitlab.EditProjectMemberOptions{
				AccessLevel: gitlab.Ptr(gitlab.MaintainerPermissions), ExpiresAt: gitlab.Ptr(""),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.AccessLevel).To(Equal(gitlab.MaintainerPermissions))
			Expect(changed.ExpiresAt).To(BeNil())

			r, err = c.DeleteProjectMember(id, u.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetProjectMember(id, u.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("can be added several at a time", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		first, second := d.newUser(fresh("several")), d.newUser(fresh("several"))
		c := d.as(maintainer).ProjectMembers
		_, r, err := c.AddProjectMember(team.project.ID, &gitlab.AddProjectMemberOptions{
			UserID: fmt.Sprintf("%d,%d", first.ID, second.ID), AccessLevel: gitlab.Ptr(gitlab.GuestPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`201 {"status":"success"}`))
		listed, _, err := c.ListProjectMembers(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(ConsistOf(HaveField("ID", first.ID), HaveField("ID", second.ID)))
	})

	It("are listed for the project alone, or with the groups above", d.again(), func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		u := d.newUser(fresh("Own_mem.ber-"))
		c := d.as(maintainer).ProjectMembers
		_, _, err := c.AddProjectMember(team.project.ID, &gitlab.AddProjectMemberOptions{
			Username: &u.Username, AccessLevel: gitlab.Ptr(gitlab.ReporterPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		type list func(any, *gitlab.ListProjectMembersOptions, ...gitlab.RequestOptionFunc) ([]*gitlab.ProjectMember, *gitlab.Response, error)
		ids := func(list list, o *gitlab.ListProjectMembersOptions) (all []int64) {
			GinkgoHelper()
			members, _, err := list(team.project.PathWithNamespace, o)
			Expect(err).NotTo(HaveOccurred())
			for _, m := range members {
				all = append(all, m.ID)
			}
			return all
		}
		Expect(ids(c.ListProjectMembers, nil)).To(Equal([]int64{u.ID}))
		Expect(ids(c.ListAllProjectMembers, nil)).To(ConsistOf(u.ID, owner.id, maintainer.id, developer.id, guest.id, root.id))
		Expect(ids(c.ListAllProjectMembers, &gitlab.ListProjectMembersOptions{Query: gitlab.Ptr("DEVEL")})).To(Equal([]int64{developer.id}))
		Expect(ids(c.ListAllProjectMembers, &gitlab.ListProjectMembersOptions{UserIDs: &[]int64{guest.id, u.ID}})).To(ConsistOf(guest.id, u.ID))

		_, _, err = c.GetProjectMember(team.project.ID, developer.id)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		inherited, _, err := c.GetInheritedProjectMember(team.project.ID, developer.id)
		Expect(err).NotTo(HaveOccurred())
		Expect(inherited.AccessLevel).To(Equal(gitlab.DeveloperPermissions))
	})
})

var _ = throughEachDoor("Members of a group", func(d *door) {
	It("are added, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		u := d.newUser(fresh("member"))
		c := d.as(owner).GroupMembers
		for _, id := range []any{team.group.ID, team.group.FullPath} {
			expires := day(30)
			added, r, err := c.AddGroupMember(id, &gitlab.AddGroupMemberOptions{
				Username: &u.Username, AccessLevel: gitlab.Ptr(gitlab.ReporterPermissions), ExpiresAt: gitlab.Ptr(expires.String()),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(added.ID).To(Equal(u.ID))
			Expect(added.AccessLevel).To(Equal(gitlab.ReporterPermissions))
			Expect(added.ExpiresAt).To(Equal(&expires))
			got, _, err := c.GetGroupMember(id, u.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(added))
			changed, _, err := c.EditGroupMember(id, u.ID, &gitlab.EditGroupMemberOptions{AccessLevel: gitlab.Ptr(gitlab.OwnerPermissions)})
			Expect(err).NotTo(HaveOccurred())
			Expect(changed.AccessLevel).To(Equal(gitlab.OwnerPermissions))
			Expect(changed.ExpiresAt).To(Equal(&expires))
			r, err = c.RemoveGroupMember(id, u.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, _, err = c.GetGroupMember(id, u.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
		}
	})

	It("are listed for the group alone, or with the groups above", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		below := d.newGroup(owner, team.group, gitlab.PrivateVisibility)
		u := d.newUser(fresh("member"))
		c := d.as(owner)
		_, _, err := c.GroupMembers.AddGroupMember(below.ID, &gitlab.AddGroupMemberOptions{
			UserID: &u.ID, AccessLevel: gitlab.Ptr(gitlab.GuestPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		direct, _, err := c.Groups.ListGroupMembers(below.FullPath, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(direct).To(ConsistOf(HaveField("ID", u.ID), HaveField("ID", owner.id)))
		all, _, err := c.Groups.ListAllGroupMembers(below.FullPath, &gitlab.ListGroupMembersOptions{Query: gitlab.Ptr("guest")})
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(ConsistOf(HaveField("ID", guest.id)))
		_, _, err = c.GroupMembers.GetGroupMember(below.FullPath, guest.id)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		inherited, _, err := c.GroupMembers.GetInheritedGroupMember(below.FullPath, guest.id)
		Expect(err).NotTo(HaveOccurred())
		Expect(inherited.AccessLevel).To(Equal(gitlab.GuestPermissions))
	})

	It("can leave, unless they are the last owner", d.again(), func() {
		g := d.newGroup(owner, nil, gitlab.PrivateVisibility)
		_, _, err := d.as(owner).GroupMembers.AddGroupMember(g.ID, &gitlab.AddGroupMemberOptions{
			UserID: &guest.id, AccessLevel: gitlab.Ptr(gitlab.GuestPermissions),
		})
		Expect(err).NotTo(HaveOccurred())
		_, err = d.as(guest).GroupMembers.RemoveGroupMember(g.ID, guest.id, nil)
		Expect(err).NotTo(HaveOccurred())
		r := send(d.as(owner), fmt.Sprintf("DELETE groups/%d/members/%d", g.ID, owner.id), "")
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})
})
