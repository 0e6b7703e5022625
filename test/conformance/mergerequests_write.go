package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newMergeRequest creates a merge request of a branch into main.
func (d *door) newMergeRequest(by *person, project any, branch string) *gitlab.MergeRequest {
	GinkgoHelper()
	m, r, err := d.as(by).MergeRequests.CreateMergeRequest(project, &gitlab.CreateMergeRequestOptions{
		Title: gitlab.Ptr("Search"), SourceBranch: &branch, TargetBranch: gitlab.Ptr("main"),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
	return m
}

var _ = throughEachDoor("Merge requests", func(d *door) {
	var team team
	BeforeEach(func() {
		team = d.newTeam(gitlab.PublicVisibility)
		push(team.project, newHistory())
	})

	It("are created, read, changed, closed and deleted", func() {
		d.newLabel(team.project.ID, "bug")
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			c := d.as(developer).MergeRequests
			made, r, err := c.CreateMergeRequest(id, &gitlab.CreateMergeRequestOptions{
				Title: gitlab.Ptr("Draft: Größe 😀"), Description: gitlab.Ptr("- [x] one\n- [ ] two"), SourceBranch: gitlab.Ptr("left"), TargetBranch: gitlab.Ptr("main"),
				Labels: &gitlab.LabelOptions{"bug", "new"}, AssigneeIDs: &[]int64{guest.id, 0}, ReviewerIDs: &[]int64{maintainer.id}, RemoveSourceBranch: gitlab.Ptr(true), Squash: gitlab.Ptr(true),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect([]any{made.ProjectID, made.SourceProjectID, made.TargetProjectID}).To(HaveEach(team.project.ID))
			Expect(made.Labels).To(Equal(gitlab.Labels{"bug", "new"}))
			Expect(made.Author.Username).To(HavePrefix("developer"))
			Expect(made.Assignees).To(HaveExactElements(HaveField("ID", guest.id)))
			Expect(made.Reviewers).To(HaveExactElements(HaveField("ID", maintainer.id)))
			Expect(made.References.Full).To(Equal(fmt.Sprintf("%s!%d", team.project.PathWithNamespace, made.IID)))
			Expect([]bool{made.Draft, made.ForceRemoveSourceBranch, made.Squash, made.Subscribed, made.FirstContribution}).To(Equal([]bool{true, true, true, true, false}))
			got, _, err := c.GetMergeRequest(id, made.IID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect([]any{got.ID, got.Title, got.State}).To(Equal([]any{made.ID, "Draft: Größe 😀", "opened"}))

			_, r, err = c.CreateMergeRequest(id, &gitlab.CreateMergeRequestOptions{Title: gitlab.Ptr("Again"), SourceBranch: gitlab.Ptr("left"), TargetBranch: gitlab.Ptr("main")})
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(fmt.Sprintf(`409 {"message":["Another open merge request already exists for this source branch: !%d"]}`, made.IID)))
			_, r, err = c.CreateMergeRequest(id, &gitlab.CreateMergeRequestOptions{Title: gitlab.Ptr("Itself"), SourceBranch: gitlab.Ptr("main"), TargetBranch: gitlab.Ptr("main")})
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`422 {"message":["You can't use same project/branch for source and target"]}`))

			changed, r, err := d.as(maintainer).MergeRequests.UpdateMergeRequest(id, made.IID, &gitlab.UpdateMergeRequestOptions{
				Title: gitlab.Ptr("Other"), AddLabels: &gitlab.LabelOptions{"more"}, RemoveLabels: &gitlab.LabelOptions{"new"}, TargetBranch: gitlab.Ptr("right/side"),
				AssigneeIDs: &[]int64{}, StateEvent: gitlab.Ptr("close"), DiscussionLocked: gitlab.Ptr(true),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(200))
			Expect([]any{changed.Title, changed.State, changed.DiscussionLocked, changed.TargetBranch, changed.Draft}).To(Equal([]any{"Other", "closed", true, "right/side", false}))
			Expect(changed.Labels).To(Equal(gitlab.Labels{"bug", "more"}))
			Expect(changed.Assignees).To(BeEmpty())
			Expect(changed.ClosedBy.ID).To(Equal(maintainer.id))
			Expect(changed.ClosedAt).NotTo(BeNil())

			r, err = c.DeleteMergeRequest(id, made.IID)
			Expect(err).To(HaveOccurred())
			Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
			r, err = d.as(owner).MergeRequests.DeleteMergeRequest(id, made.IID)
			Expect(err).NotTo(HaveOccurred())
			Expect(answered(r)).To(Equal("204"))
			_, r, err = c.GetMergeRequest(id, made.IID, nil)
			Expect(err).To(MatchError(gitlab.ErrNotFound))
			Expect(answered(r)).To(Equal(`404 {"message":"404 Not found"}`))
		}
	})

	It("have subscribers, participants, reviewers and times", func() {
		made, c := d.newMergeRequest(developer, team.project.ID, "left"), d.as(maintainer).MergeRequests
		id, iid := team.project.ID, made.IID
		on, r, err := c.SubscribeToMergeRequest(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{r.StatusCode, on.Subscribed}).To(Equal([]any{201, true}))
		_, r, _ = c.SubscribeToMergeRequest(id, iid)
		Expect(r.StatusCode).To(Equal(304))
		off, _, err := c.UnsubscribeFromMergeRequest(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect(off.Subscribed).To(BeFalse())

		_, _, err = c.UpdateMergeRequest(id, iid, &gitlab.UpdateMergeRequestOptions{ReviewerIDs: &[]int64{guest.id}})
		Expect(err).NotTo(HaveOccurred())
		people, _, err := c.GetMergeRequestParticipants(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect(people).To(HaveExactElements(HaveField("ID", developer.id), HaveField("ID", guest.id)))
		reviewers, _, err := c.GetMergeRequestReviewers(id, iid)
		Expect(err).NotTo(HaveOccurred())
		Expect(reviewers).To(HaveExactElements(And(HaveField("User.ID", guest.id), HaveField("State", "unreviewed"))))

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

	It("close issues", func() {
		i := d.newIssue(guest, team.project.ID, gitlab.CreateIssueOptions{Title: gitlab.Ptr("Slow")})
		made := d.newMergeRequest(developer, team.project.ID, "left")
		c := d.as(developer).MergeRequests
		_, _, err := c.UpdateMergeRequest(team.project.ID, made.IID, &gitlab.UpdateMergeRequestOptions{Description: gitlab.Ptr(fmt.Sprintf("Closes #%d", i.IID))})
		Expect(err).NotTo(HaveOccurred())
		closed, _, err := c.GetIssuesClosedOnMerge(team.project.ID, made.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(closed).To(HaveExactElements(HaveField("ID", i.ID)))
		by, _, err := d.as(guest).Issues.ListMergeRequestsClosingIssue(team.project.ID, i.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(by).To(HaveExactElements(HaveField("ID", made.ID)))
		related, _, err := d.as(guest).Issues.ListMergeRequestsRelatedToIssue(team.project.ID, i.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(related).To(HaveExactElements(HaveField("ID", made.ID)))
	})

	It("target the origin of a fork", d.again(), func() {
		fork, _, err := d.as(outsider).Projects.ForkProject(team.project.ID, &gitlab.ForkProjectOptions{Path: gitlab.Ptr(fresh("fork")), Visibility: gitlab.Ptr(gitlab.PublicVisibility)})
		Expect(err).NotTo(HaveOccurred())
		d.finished(outsider, fork)
		made, _, err := d.as(outsider).MergeRequests.CreateMergeRequest(fork.ID, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Ours"), SourceBranch: gitlab.Ptr("left"), TargetBranch: gitlab.Ptr("main"), TargetProjectID: &team.project.ID, AllowCollaboration: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{made.ProjectID, made.SourceProjectID, made.AllowCollaboration, made.FirstContribution}).To(Equal([]any{team.project.ID, fork.ID, true, true}))
		other := d.newTeam(gitlab.PublicVisibility)
		_, r, err := d.as(outsider).MergeRequests.CreateMergeRequest(fork.ID, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Ours"), SourceBranch: gitlab.Ptr("left"), TargetBranch: gitlab.Ptr("main"), TargetProjectID: &other.project.ID,
		})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`422 {"message":["The source project is not a fork of the target project"]}`))
	})

	It("let those who can merge push to the fork", d.again(), func() {
		work := gittest.New(GinkgoTB(), "sha1")
		work.Commit(GinkgoTB(), "file", "1\n")
		team := d.newTeam(gitlab.PublicVisibility)
		push(team.project, work)
		fork, _, err := d.as(outsider).Projects.ForkProject(team.project.ID, &gitlab.ForkProjectOptions{Path: gitlab.Ptr(fresh("fork")), Visibility: gitlab.Ptr(gitlab.PublicVisibility)})
		Expect(err).NotTo(HaveOccurred())
		d.finished(outsider, fork)
		commit := func(by *person, branch string, from *string) (*gitlab.Commit, *gitlab.Response, error) {
			return d.as(by).Commits.CreateCommit(fork.ID, &gitlab.CreateCommitOptions{
				Branch: &branch, StartBranch: from, CommitMessage: gitlab.Ptr("Add a file"),
				Actions: []*gitlab.CommitActionOptions{{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr(fresh("file")), Content: gitlab.Ptr("1\n")}},
			})
		}
		_, _, err = commit(outsider, "topic", gitlab.Ptr("main"))
		Expect(err).NotTo(HaveOccurred())
		_, r, err := commit(maintainer, "topic", nil)
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))
		made, _, err := d.as(outsider).MergeRequests.CreateMergeRequest(fork.ID, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Ours"), SourceBranch: gitlab.Ptr("topic"), TargetBranch: gitlab.Ptr("main"), TargetProjectID: &team.project.ID, AllowCollaboration: gitlab.Ptr(true),
		})
		Expect(err).NotTo(HaveOccurred())

		added, _, err := commit(maintainer, "topic", nil)
		Expect(err).NotTo(HaveOccurred())
		_, r, err = d.as(maintainer).RepositoryFiles.CreateFile(fork.ID, "late", &gitlab.CreateFileOptions{
			Branch: gitlab.Ptr("topic"), CommitMessage: gitlab.Ptr("Add a file"), Content: gitlab.Ptr("1\n"),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		for branch, from := range map[string]*string{"main": nil, "new": gitlab.Ptr("topic")} {
			_, r, err = commit(maintainer, branch, from)
			Expect(err).To(HaveOccurred())
			Expect(r.StatusCode).To(Equal(403), branch)
		}
		_, r, err = commit(guest, "topic", nil)
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))

		work.Git(GinkgoTB(), "fetch", "--quiet", remoteFor(fork, maintainer.token), "topic")
		work.Git(GinkgoTB(), "checkout", "--quiet", "-B", "topic", "FETCH_HEAD")
		Expect(work.Git(GinkgoTB(), "rev-parse", "HEAD^")).To(Equal(added.ID))
		pushed := work.Commit(GinkgoTB(), "pushed", "1\n")
		work.Git(GinkgoTB(), "push", "--quiet", remoteFor(fork, maintainer.token), "topic")
		Eventually(func() (*gitlab.MergeRequest, error) {
			m, _, err := d.as(maintainer).MergeRequests.GetMergeRequest(team.project.ID, made.IID, nil)
			return m, err
		}).WithPolling(polling).Should(HaveField("SHA", pushed))
		Expect(work.Refused(GinkgoTB(), "push", remoteFor(fork, maintainer.token), "topic:main")).To(ContainSubstring("You need the Developer role"))
		Expect(work.Refused(GinkgoTB(), "push", remoteFor(fork, maintainer.token), ":topic")).To(ContainSubstring("You need the Developer role"))
		_, _, err = d.as(outsider).MergeRequests.UpdateMergeRequest(team.project.ID, made.IID, &gitlab.UpdateMergeRequestOptions{StateEvent: gitlab.Ptr("close")})
		Expect(err).NotTo(HaveOccurred())
		work.Commit(GinkgoTB(), "late", "2\n")
		Expect(work.Refused(GinkgoTB(), "push", remoteFor(fork, maintainer.token), "topic")).To(ContainSubstring("You are not allowed to push code to this project."))
	})
})
