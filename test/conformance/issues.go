package conformance

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newIssue creates an issue of a project.
func (d *door) newIssue(by *person, project any, o gitlab.CreateIssueOptions) *gitlab.Issue {
	GinkgoHelper()
	i, r, err := d.as(by).Issues.CreateIssue(project, &o)
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
	return i
}

var _ = throughEachDoor("Issues", func(d *door) {
	var team team
	BeforeEach(func() { team = d.newTeam(gitlab.PrivateVisibility) })

	It("are created, read, changed, closed and deleted", func() {
		d.newLabel(team.project.ID, "bug")
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			due := gitlab.ISOTime(time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC))
			made := d.newIssue(maintainer, id, gitlab.CreateIssueOptions{
				Title: gitlab.Ptr("Größe 😀"), Description: gitlab.Ptr("- [x] one\n- [ ] two"), Labels: &gitlab.LabelOptions{"bug", "new"},
				AssigneeIDs: &[]int64{guest.id, 0}, DueDate: &due, Weight: gitlab.Ptr[int64](3), Confidential: gitlab.Ptr(true), IssueType: gitlab.Ptr("incident"),
			})
			Expect(made.ID).NotTo(BeZero())
			Expect(made.ProjectID).To(Equal(team.project.ID))
			Expect(made.Labels).To(Equal(gitlab.Labels{"bug", "new"}))
			Expect(made.Author.Username).To(HavePrefix("maintainer"))
			Expect(made.Assignees).To(HaveExactElements(HaveField("ID", guest.id)))
			Expect(made.References.Full).To(Equal(fmt.Sprintf("%s#%d", team.project.PathWithNamespace, made.IID)))
			Expect(made.TaskCompletionStatus).To(Equal(&gitlab.TasksCompletionStatus{Count: 2, CompletedCount: 1}))
			Expect(made.DueDate.String()).To(Equal("2030-01-02"))
			Expect([]any{made.State, made.Weight, made.Confidential, *made.IssueType}).To(Equal([]any{"opened", int64(3), true, "incident"}))
			got, _, err := d.as(guest).Issues.GetIssue(id, made.IID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(made))
			same, _, err := d.as(root).Issues.GetIssueByID(made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(same).To(HaveField("WebURL", made.WebURL))

			changed, r, err := d.as(developer).Issues.UpdateIssue(id, made.IID, &gitlab.UpdateIssueOptions{
				Title: gitlab.Ptr("Other"), AddLabels: &gitlab.LabelOptions{"more"}, RemoveLabels: &gitlab.LabelOptions{"new"},
				AssigneeIDs: &[]int64{}, StateEvent: gitlab.Ptr("close"), DiscussionLocked: gitlab.Ptr(true), ResetDueDate: true, ResetWeight: true,
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect([]any{changed.Title, changed.State, changed.DiscussionLocked, changed.Weight}).To(Equal([]any{"Other", "closed", true, int64(0)}))
			Expect(changed.Labels).To(Equal(gitlab.Labels{"bug", "more"}))
			Expect(changed.Assignees).To(BeEmpty())
			Expect(changed.DueDate).To(BeNil())
			Expect(changed.ClosedBy.ID).To(Equal(developer.id))
			Expect(changed.ClosedAt).NotTo(BeNil())
			opened, _, err := d.as(maintainer).Issues.UpdateIssue(id, made.IID, &gitlab.UpdateIssueOptions{StateEvent: gitlab.Ptr("reopen")})
			Expect(err).NotTo(HaveOccurred())
			Expect([]any{opened.State, opened.ClosedAt, opened.ClosedBy}).To(Equal([]any{"opened", (*time.Time)(nil), (*gitlab.IssueCloser)(nil)}))

			r, err = d.as(maintainer).Issues.DeleteIssue(id, made.IID)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
			r, err = d.as(owner).Issues.DeleteIssue(id, made.IID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = d.as(owner).Issues.GetIssue(id, made.IID)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Issue Not Found"}`))
		}
	})

	It("are found by filters and their opposites, in a project, a group and everywhere", func() {
		word := fresh("word")
		first := d.newIssue(maintainer, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("First " + word), Labels: &gitlab.LabelOptions{"bug"}, AssigneeIDs: &[]int64{guest.id}})
		second := d.newIssue(guest, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Second"), Description: gitlab.Ptr("a " + word + " b")})
		found := func(issues []*gitlab.Issue, _ *gitlab.Response, err error) (ids []int64) {
			GinkgoHelper()
			Expect(err).NotTo(HaveOccurred())
			for _, i := range issues {
				ids = append(ids, i.ID)
			}
			return ids
		}
		c := d.as(maintainer).Issues
		for _, test := range []struct {
			o    gitlab.ListProjectIssuesOptions
			want []int64
		}{
			{gitlab.ListProjectIssuesOptions{}, []int64{second.ID, first.ID}},
			{gitlab.ListProjectIssuesOptions{Sort: gitlab.Ptr("asc"), OrderBy: gitlab.Ptr("title")}, []int64{first.ID, second.ID}},
			{gitlab.ListProjectIssuesOptions{Labels: &gitlab.LabelOptions{"bug"}}, []int64{first.ID}},
			{gitlab.ListProjectIssuesOptions{NotLabels: &gitlab.LabelOptions{"bug"}}, []int64{second.ID}},
			{gitlab.ListProjectIssuesOptions{AssigneeID: gitlab.AssigneeID(gitlab.UserIDNone)}, []int64{second.ID}},
			{gitlab.ListProjectIssuesOptions{AssigneeID: gitlab.AssigneeID(guest.id)}, []int64{first.ID}},
			{gitlab.ListProjectIssuesOptions{AuthorID: &guest.id}, []int64{second.ID}},
			{gitlab.ListProjectIssuesOptions{NotAuthorID: &guest.id}, []int64{first.ID}},
			{gitlab.ListProjectIssuesOptions{IIDs: &[]int64{first.IID}}, []int64{first.ID}},
			{gitlab.ListProjectIssuesOptions{State: gitlab.Ptr("closed")}, nil},
			{gitlab.ListProjectIssuesOptions{Search: gitlab.Ptr(word), In: gitlab.Ptr("title")}, []int64{first.ID}},
		} {
			Expect(found(c.ListProjectIssues(team.project.ID, &test.o))).To(Equal(test.want), "%+v", test.o)
		}
		Expect(found(c.ListGroupIssues(team.group.ID, &gitlab.ListGroupIssuesOptions{Labels: &gitlab.LabelOptions{"bug"}}))).To(Equal([]int64{first.ID}))
		Expect(found(c.ListIssues(&gitlab.ListIssuesOptions{Search: &word}))).To(Equal([]int64{first.ID}), "written by the caller")
		Expect(found(c.ListIssues(&gitlab.ListIssuesOptions{Search: &word, Scope: gitlab.Ptr("all")}))).To(Equal([]int64{second.ID, first.ID}))
		listed, _, err := c.ListProjectIssues(team.project.ID, &gitlab.ListProjectIssuesOptions{WithLabelDetails: gitlab.Ptr(true), IIDs: &[]int64{first.IID}})
		Expect(err).NotTo(HaveOccurred())
		Expect(listed[0].LabelDetails).To(HaveExactElements(HaveField("Name", "bug")))
		label, _, err := c.GetIssue(team.project.ID, first.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(label.Labels).To(Equal(gitlab.Labels{"bug"}))
		counted, _, err := d.as(maintainer).Labels.GetLabel(team.project.ID, "bug")
		Expect(err).NotTo(HaveOccurred())
		Expect(counted.OpenIssuesCount).To(Equal(int64(1)))
	})

	It("have subscribers, participants and times", func() {
		i, c := d.newIssue(guest, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Broken")}), d.as(developer).Issues
		id, iid := team.project.ID, i.IID
		Expect(i.Subscribed).To(BeTrue())
		on, r, err := c.SubscribeToIssue(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{r.StatusCode, on.Subscribed}).To(Equal([]any{201, true}))
		_, r, _ = c.SubscribeToIssue(id, iid)
		Expect(r.StatusCode).To(Equal(304))
		off, _, err := c.UnsubscribeFromIssue(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect(off.Subscribed).To(BeFalse())

		_, _, err = c.UpdateIssue(id, iid, &gitlab.UpdateIssueOptions{AssigneeIDs: &[]int64{maintainer.id}})
		Expect(err).NotTo(HaveOccurred())
		people, _, err := c.GetParticipants(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect(people).To(HaveExactElements(HaveField("ID", guest.id), HaveField("ID", maintainer.id)))

		times := func(t *gitlab.TimeStats, _ *gitlab.Response, err error) gitlab.TimeStats {
			GinkgoHelper()
			Expect(err).NotTo(HaveOccurred())
			return *t
		}
		times(c.SetTimeEstimate(id, iid, &gitlab.SetTimeEstimateOptions{Duration: gitlab.Ptr("3h30m")}))
		want := gitlab.TimeStats{HumanTimeEstimate: "3h 30m", HumanTotalTimeSpent: "1d", TimeEstimate: 12600, TotalTimeSpent: 28800}
		Expect(times(c.AddSpentTime(id, iid, &gitlab.AddSpentTimeOptions{Duration: gitlab.Ptr("1d")}))).To(Equal(want))
		Expect(times(c.GetTimeSpent(id, iid))).To(Equal(want))
		times(c.ResetTimeEstimate(id, iid))
		Expect(times(c.ResetSpentTime(id, iid))).To(Equal(gitlab.TimeStats{}))
	})

	It("are public in a public project, and need an account to be written", func() {
		open := d.newTeam(gitlab.PublicVisibility)
		d.newIssue(outsider, open.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Question"), Labels: &gitlab.LabelOptions{"bug"}})
		at := fmt.Sprintf("projects/%d/issues", open.project.ID)
		Expect(answered(d.get(at))).To(And(HavePrefix("200 "), ContainSubstring(`"title":"Question"`), ContainSubstring(`"labels":[]`)))
		Expect(answered(send(d.as(nobody), "POST "+at, `{"title":"a"}`))).To(Equal(`401 {"message":"401 Unauthorized"}`))
		Expect(answered(send(d.as(guest), "PUT "+at+"/1", `{"title":"a"}`))).To(Equal(`403 {"message":"403 Forbidden"}`))
		Expect(answered(send(d.as(outsider), "PUT "+at+"/1", `{"title":"Answer"}`))).To(HavePrefix("200 "))
	})
})
