package conformance

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newReview creates a merge request of the developer, from the branch topic into main.
func (d *door) newReview(t team) *gitlab.MergeRequest {
	GinkgoHelper()
	for _, branch := range []string{"main", "topic"} {
		o := &gitlab.CreateCommitOptions{Branch: &branch, CommitMessage: gitlab.Ptr("Add a file"), Actions: []*gitlab.CommitActionOptions{{
			Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr(branch + ".md"), Content: gitlab.Ptr("# " + branch + "\n"),
		}}}
		if branch != "main" {
			o.StartBranch = gitlab.Ptr("main")
		}
		_, _, err := d.as(maintainer).Commits.CreateCommit(t.project.ID, o)
		Expect(err).NotTo(HaveOccurred())
	}
	made, _, err := d.as(developer).MergeRequests.CreateMergeRequest(t.project.ID, &gitlab.CreateMergeRequestOptions{
		Title: gitlab.Ptr("Add a topic"), SourceBranch: gitlab.Ptr("topic"), TargetBranch: gitlab.Ptr("main"),
	})
	Expect(err).NotTo(HaveOccurred())
	return made
}

var _ = throughEachDoor("Reviews of merge requests", func(d *door) {
	var (
		team team
		m    *gitlab.MergeRequest
		p, i int64
	)
	BeforeEach(func() {
		team = d.newTeam(gitlab.PublicVisibility)
		m = d.newReview(team)
		p, i = team.project.ID, m.IID
	})

	It("have notes", func() {
		c := d.as(guest).Notes
		made, r, err := c.CreateMergeRequestNote(p, i, &gitlab.CreateMergeRequestNoteOptions{Body: gitlab.Ptr("one")})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		Expect(*made).To(And(HaveField("NoteableType", "MergeRequest"), HaveField("NoteableID", m.ID), HaveField("NoteableIID", i), HaveField("Resolvable", false)))
		got, _, err := d.as(nobody).Notes.GetMergeRequestNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		changed, _, err := c.UpdateMergeRequestNote(p, i, made.ID, &gitlab.UpdateMergeRequestNoteOptions{Body: gitlab.Ptr("two")})
		Expect(err).NotTo(HaveOccurred())
		listed, _, err := d.as(nobody).Notes.ListMergeRequestNotes(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(ContainElement(Equal(changed)))
		_, r, err = d.as(nobody).Notes.CreateMergeRequestNote(p, i, &gitlab.CreateMergeRequestNoteOptions{Body: gitlab.Ptr("x")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`401 {"message":"401 Unauthorized"}`))
		r, err = c.DeleteMergeRequestNote(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, r, err = c.GetMergeRequestNote(p, i, made.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
	})

	It("have discussions about the diff, which are resolved", func() {
		c := d.as(guest).Discussions
		position := &gitlab.PositionOptions{
			BaseSHA: &m.DiffRefs.BaseSha, StartSHA: &m.DiffRefs.StartSha, HeadSHA: &m.DiffRefs.HeadSha, PositionType: gitlab.Ptr("text"),
			OldPath: gitlab.Ptr("topic.md"), NewPath: gitlab.Ptr("topic.md"), NewLine: gitlab.Ptr[int64](1),
		}
		made, r, err := c.CreateMergeRequestDiscussion(p, i, &gitlab.CreateMergeRequestDiscussionOptions{Body: gitlab.Ptr("Why?"), Position: position})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		Expect(made.Notes).To(HaveExactElements(And(HaveField("Type", gitlab.DiffNote), HaveField("Resolvable", true), HaveField("Position", HaveValue(And(
			HaveField("HeadSHA", m.DiffRefs.HeadSha), HaveField("PositionType", "text"), HaveField("NewPath", "topic.md"), HaveField("NewLine", int64(1)),
			HaveField("OldLine", BeZero()),
		))))))
		reply, _, err := d.as(developer).Discussions.AddMergeRequestDiscussionNote(p, i, made.ID, &gitlab.AddMergeRequestDiscussionNoteOptions{Body: gitlab.Ptr("So.")})
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Type).To(Equal(gitlab.DiffNote))
		resolved, _, err := d.as(developer).Discussions.ResolveMergeRequestDiscussion(p, i, made.ID, &gitlab.ResolveMergeRequestDiscussionOptions{Resolved: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(resolved.Notes).To(HaveEach(And(HaveField("Resolved", true), HaveField("ResolvedBy.ID", developer.id))))
		again, _, err := c.UpdateMergeRequestDiscussionNote(p, i, made.ID, made.Notes[0].ID, &gitlab.UpdateMergeRequestDiscussionNoteOptions{Resolved: gitlab.Ptr(false)})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Resolved).To(BeFalse())
		got, _, err := d.as(nobody).Discussions.GetMergeRequestDiscussion(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Notes).To(HaveLen(2))
		listed, _, err := d.as(nobody).Discussions.ListMergeRequestDiscussions(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(ContainElement(Equal(got)))
		r, err = d.as(developer).Discussions.DeleteMergeRequestDiscussionNote(p, i, made.ID, reply.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		Expect(answered(send(d.as(guest), fmt.Sprintf("POST projects/%d/merge_requests/%d/discussions", p, i), `{"body":"x","position":{"position_type":"text"}}`))).
			To(Equal(`400 {"error":"position[base_sha] is missing, position[start_sha] is missing, position[head_sha] is missing"}`))
	})

	It("have emoji reactions", func() {
		n, _, err := d.as(developer).Notes.CreateMergeRequestNote(p, i, &gitlab.CreateMergeRequestNoteOptions{Body: gitlab.Ptr("one")})
		Expect(err).NotTo(HaveOccurred())
		c, thumb := d.as(guest).AwardEmoji, &gitlab.CreateAwardEmojiOptions{Name: "+1"}
		made, _, err := c.CreateMergeRequestAwardEmoji(p, i, thumb)
		Expect(err).NotTo(HaveOccurred())
		Expect(*made).To(And(HaveField("AwardableType", "MergeRequest"), HaveField("AwardableID", m.ID), HaveField("Name", "thumbsup")))
		got, _, err := d.as(nobody).AwardEmoji.GetMergeRequestAwardEmoji(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		listed, _, err := d.as(nobody).AwardEmoji.ListMergeRequestAwardEmoji(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(made)))
		r, err := d.as(owner).AwardEmoji.DeleteMergeRequestAwardEmoji(p, i, made.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`401 {"message":"401 Unauthorized"}`))
		r, err = c.DeleteMergeRequestAwardEmoji(p, i, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))

		made, _, err = c.CreateMergeRequestAwardEmojiOnNote(p, i, n.ID, thumb)
		Expect(err).NotTo(HaveOccurred())
		Expect(made.AwardableType).To(Equal("Note"))
		got, _, err = c.GetMergeRequestAwardEmojiOnNote(p, i, n.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(made))
		listed, _, err = c.ListMergeRequestAwardEmojiOnNote(p, i, n.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(Equal(made)))
		r, err = c.DeleteMergeRequestAwardEmojiOnNote(p, i, n.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("have state events", func() {
		for _, event := range []string{"close", "reopen"} {
			_, _, err := d.as(developer).MergeRequests.UpdateMergeRequest(p, i, &gitlab.UpdateMergeRequestOptions{StateEvent: &event})
			Expect(err).NotTo(HaveOccurred())
		}
		c := d.as(outsider).ResourceStateEvents
		listed, _, err := c.ListMergeStateEvents(p, i, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(HaveField("State", gitlab.ClosedEventType), HaveField("State", gitlab.ReopenedEventType)))
		Expect(*listed[0]).To(And(HaveField("ResourceType", "MergeRequest"), HaveField("ResourceID", m.ID), HaveField("User.ID", developer.id)))
		got, _, err := c.GetMergeRequestStateEvent(p, i, listed[1].ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(listed[1]))
		Expect(answered(d.get(fmt.Sprintf("projects/%d/merge_requests/%d/resource_state_events", p, i)))).To(Equal(`401 {"message":"401 Unauthorized"}`))
	})

	It("have approvals and approval rules", func() {
		c := d.as(maintainer).MergeRequestApprovals
		rule, r, err := c.CreateApprovalRule(p, i, &gitlab.CreateMergeRequestApprovalRuleOptions{
			Name: gitlab.Ptr("Security"), ApprovalsRequired: gitlab.Ptr[int64](1), UserIDs: &[]int64{maintainer.id, guest.id}, GroupIDs: &[]int64{team.group.ID},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		Expect(*rule).To(And(HaveField("Name", "Security"), HaveField("RuleType", "regular"), HaveField("Users", HaveLen(2)), HaveField("Groups", HaveLen(1))))
		rule, _, err = c.UpdateApprovalRule(p, i, rule.ID, &gitlab.UpdateMergeRequestApprovalRuleOptions{Name: gitlab.Ptr("Safety"), GroupIDs: &[]int64{}})
		Expect(err).NotTo(HaveOccurred())
		Expect(*rule).To(And(HaveField("Name", "Safety"), HaveField("Users", HaveLen(2)), HaveField("Groups", BeEmpty())))
		rules, _, err := c.GetApprovalRules(p, i)
		Expect(err).NotTo(HaveOccurred())
		Expect(rules).To(HaveExactElements(Equal(rule)))
		one := fmt.Sprintf("projects/%d/merge_requests/%d/approval_rules/%d", p, i, rule.ID)
		Expect(send(d.as(nobody), "GET "+one, "").StatusCode).To(Equal(http.StatusOK))
		Expect(answered(send(d.as(guest), "PUT "+one, `{"name":"x"}`))).To(Equal(`403 {"message":"403 Forbidden"}`))

		before, _, err := c.GetConfiguration(p, i)
		Expect(err).NotTo(HaveOccurred())
		Expect(*before).To(And(HaveField("Approved", false), HaveField("ApprovalsRequired", int64(1)), HaveField("ApprovalsLeft", int64(1)), HaveField("UserCanApprove", true)))
		_, r, err = c.ApproveMergeRequest(p, i, &gitlab.ApproveMergeRequestOptions{SHA: gitlab.Ptr("0123456789012345678901234567890123456789")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`409 {"message":"SHA does not match HEAD of source branch: ` + m.SHA + `"}`))
		after, r, err := c.ApproveMergeRequest(p, i, &gitlab.ApproveMergeRequestOptions{SHA: &m.SHA})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		Expect(*after).To(And(HaveField("Approved", true), HaveField("ApprovalsLeft", BeZero()), HaveField("UserHasApproved", true), HaveField("UserCanApprove", false)))
		Expect(after.ApprovedBy).To(HaveExactElements(HaveField("User.ID", maintainer.id)))
		state, _, err := c.GetApprovalState(p, i)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Rules).To(HaveExactElements(And(HaveField("Approved", true), HaveField("ApprovedBy", HaveExactElements(HaveField("ID", maintainer.id))))))
		for _, who := range []*person{maintainer, developer, outsider, nobody} {
			_, r, err := d.as(who).MergeRequestApprovals.ApproveMergeRequest(p, i, nil)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`401 {"message":"401 Unauthorized"}`), who.name)
		}
		r, err = c.UnapproveMergeRequest(p, i)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(http.StatusCreated))
		r, err = c.DeleteApprovalRule(p, i, rule.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})
})
