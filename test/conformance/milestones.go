package conformance

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// inJune returns a day of June 2030.
func inJune(n int) *gitlab.ISOTime {
	return gitlab.Ptr(gitlab.ISOTime(time.Date(2030, 6, n, 0, 0, 0, 0, time.UTC)))
}

var _ = throughEachDoor("Milestones", func(d *door) {
	It("of projects are created, read, changed and removed", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(developer).Milestones
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			made, r, err := c.CreateMilestone(id, &gitlab.CreateMilestoneOptions{
				Title: gitlab.Ptr("1.0"), Description: gitlab.Ptr("First"), StartDate: inJune(1), DueDate: inJune(30),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(made.CreatedAt).NotTo(BeNil())
			Expect(*made).To(Equal(gitlab.Milestone{
				ID: made.ID, IID: made.IID, ProjectID: team.project.ID, Title: "1.0", Description: "First", StartDate: inJune(1), DueDate: inJune(30), State: "active",
				WebURL: made.WebURL, CreatedAt: made.CreatedAt, UpdatedAt: made.CreatedAt, Expired: gitlab.Ptr(false),
			}))
			Expect(made.WebURL).To(HavePrefix(team.project.WebURL + "/-/milestones/"))
			got, _, err := d.as(guest).Milestones.GetMilestone(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))

			_, r, err = c.CreateMilestone(id, &gitlab.CreateMilestoneOptions{Title: gitlab.Ptr("1.0")})
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`400 {"message":{"title":["already being used for another group or project milestone."]}}`))
			changed, r, err := c.UpdateMilestone(id, made.ID, &gitlab.UpdateMilestoneOptions{
				Title: gitlab.Ptr("1.1"), DueDate: gitlab.Ptr(gitlab.ISOTime{}), StateEvent: gitlab.Ptr("close"),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect(changed).To(And(HaveField("Title", "1.1"), HaveField("State", "closed"), HaveField("DueDate", BeNil()), HaveField("StartDate", inJune(1))))
			listed, r, err := c.ListMilestones(id, &gitlab.ListMilestonesOptions{IIDs: &[]int64{made.IID}, State: gitlab.Ptr("closed"), Search: gitlab.Ptr("FIRST")})
			Expect(err).NotTo(HaveOccurred())
			Expect(listed).To(HaveExactElements(changed))
			Expect(r.TotalItems).To(BeEquivalentTo(1))

			r, err = c.DeleteMilestone(id, made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetMilestone(id, made.ID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("of groups are created, read, changed and removed, and listed with those of projects", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := d.as(developer).GroupMilestones
		made, r, err := c.CreateGroupMilestone(team.group.ID, &gitlab.CreateGroupMilestoneOptions{Title: gitlab.Ptr("All"), DueDate: inJune(2)})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(*made).To(Equal(gitlab.GroupMilestone{
			ID: made.ID, IID: 1, GroupID: team.group.ID, Title: "All", DueDate: inJune(2), State: "active", CreatedAt: made.CreatedAt, UpdatedAt: made.CreatedAt,
			Expired: gitlab.Ptr(false),
		}))
		got, _, err := d.as(guest).GroupMilestones.GetGroupMilestone(team.group.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		_, _, err = d.as(developer).Milestones.CreateMilestone(team.project.ID, &gitlab.CreateMilestoneOptions{Title: gitlab.Ptr("Own"), DueDate: inJune(1)})
		Expect(err).NotTo(HaveOccurred())
		for ancestors, want := range map[bool][]string{false: {"Own"}, true: {"Own", "All"}} {
			listed, _, err := d.as(guest).Milestones.ListMilestones(team.project.ID, &gitlab.ListMilestonesOptions{IncludeAncestors: &ancestors})
			Expect(err).NotTo(HaveOccurred())
			var titles []string
			for _, m := range listed {
				titles = append(titles, m.Title)
			}
			Expect(titles).To(Equal(want))
		}
		listed, _, err := c.ListGroupMilestones(team.group.ID, &gitlab.ListGroupMilestonesOptions{Title: gitlab.Ptr("All")})
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(made))
		changed, _, err := c.UpdateGroupMilestone(team.group.ID, made.ID, &gitlab.UpdateGroupMilestoneOptions{StateEvent: gitlab.Ptr("close")})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.State).To(Equal("closed"))
		r, err = c.DeleteGroupMilestone(team.group.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("are promoted to the group", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made, _, err := d.as(developer).Milestones.CreateMilestone(team.project.ID, &gitlab.CreateMilestoneOptions{Title: gitlab.Ptr("1.0")})
		Expect(err).NotTo(HaveOccurred())
		i := d.newIssue(developer, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Broken"), MilestoneID: &made.ID})
		// The client has no method for it.
		Expect(answered(send(d.as(developer), fmt.Sprintf("POST projects/%d/milestones/%d/promote", team.project.ID, made.ID), ""))).
			To(And(HavePrefix("200 "), ContainSubstring(fmt.Sprintf(`"group_id":%d,"title":"1.0"`, team.group.ID))))
		got, _, err := d.as(developer).Issues.GetIssue(team.project.ID, i.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Milestone).To(And(HaveField("Title", "1.0"), HaveField("ID", Not(Equal(made.ID)))))
	})

	It("are changed only by Reporters", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		_, r, err := d.as(guest).Milestones.CreateMilestone(team.project.ID, &gitlab.CreateMilestoneOptions{Title: gitlab.Ptr("1.0")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		_, r, err = d.as(outsider).Milestones.ListMilestones(team.project.ID, nil)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Project Not Found"}`))
	})
})
