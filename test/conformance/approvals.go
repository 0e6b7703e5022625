package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

var _ = throughEachDoor("Approvals of projects", func(d *door) {
	It("have settings and rules, which hold for merge requests", func() {
		team := d.newTeam(gitlab.PublicVisibility)
		m := d.newReview(team)
		p, c := team.project.ID, d.as(maintainer).Projects
		before, _, err := c.GetApprovalConfiguration(p)
		Expect(err).NotTo(HaveOccurred())
		Expect(*before).To(And(HaveField("ApprovalsBeforeMerge", BeZero()), HaveField("ResetApprovalsOnPush", true)))
		after, r, err := c.ChangeApprovalConfiguration(p, &gitlab.ChangeApprovalConfigurationOptions{
			ApprovalsBeforeMerge: gitlab.Ptr[int64](1), //nolint:staticcheck // clients still send it
			ResetApprovalsOnPush: gitlab.Ptr(false), MergeRequestsAuthorApproval: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(*after).To(And(HaveField("ApprovalsBeforeMerge", int64(1)), HaveField("ResetApprovalsOnPush", false), HaveField("MergeRequestsAuthorApproval", true)))

		rule, r, err := c.CreateProjectApprovalRule(p, &gitlab.CreateProjectLevelRuleOptions{
			Name: gitlab.Ptr("Security"), ApprovalsRequired: gitlab.Ptr[int64](1), UserIDs: &[]int64{maintainer.id}, GroupIDs: &[]int64{team.group.ID},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(*rule).To(And(HaveField("RuleType", "regular"), HaveField("Users", HaveLen(1)), HaveField("Groups", HaveLen(1))))
		changed, _, err := c.UpdateProjectApprovalRule(p, rule.ID, &gitlab.UpdateProjectLevelRuleOptions{Name: gitlab.Ptr("Safety"), GroupIDs: &[]int64{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(*changed).To(And(HaveField("ID", rule.ID), HaveField("Name", "Safety"), HaveField("Groups", BeEmpty())))
		got, _, err := c.GetProjectApprovalRule(p, rule.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(changed))
		listed, _, err := d.as(guest).Projects.GetProjectApprovalRules(p, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(changed)))
		_, r, err = d.as(developer).Projects.CreateProjectApprovalRule(p, &gitlab.CreateProjectLevelRuleOptions{Name: gitlab.Ptr("x"), ApprovalsRequired: gitlab.Ptr[int64](1)})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		state, _, err := d.as(developer).MergeRequestApprovals.GetApprovalState(p, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Rules).To(HaveExactElements(And(HaveField("Name", "Safety"), HaveField("SourceRule.ID", rule.ID))))

		approved, _, err := d.as(maintainer).MergeRequestApprovals.ApproveMergeRequest(p, m.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(approved.ApprovalsLeft).To(BeZero())
		r, err = d.as(maintainer).MergeRequestApprovals.ResetApprovalsOfMergeRequest(p, m.IID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`401 {"message":"401 Unauthorized"}`))
		r, err = d.with(d.newBot(p, gitlab.DeveloperPermissions, "api").Token).MergeRequestApprovals.ResetApprovalsOfMergeRequest(p, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(202))
		left, _, err := d.as(developer).MergeRequestApprovals.GetConfiguration(p, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(left.ApprovalsLeft).To(Equal(int64(2)))
		r, err = c.DeleteProjectApprovalRule(p, rule.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})
})
