package conformance

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newMergeable creates a merge request of a new branch with one new file into main.
func (d *door) newMergeable(project int64, branch string) *gitlab.MergeRequest {
	GinkgoHelper()
	_, _, err := d.as(developer).Commits.CreateCommit(project, &gitlab.CreateCommitOptions{
		Branch: &branch, StartBranch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Add " + branch),
		Actions: []*gitlab.CommitActionOptions{{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("new-" + branch), Content: gitlab.Ptr("1\n")}},
	})
	Expect(err).NotTo(HaveOccurred())
	m, _, err := d.as(developer).MergeRequests.CreateMergeRequest(project, &gitlab.CreateMergeRequestOptions{
		Title: gitlab.Ptr("Add " + branch), SourceBranch: &branch, TargetBranch: gitlab.Ptr("main"),
	})
	Expect(err).NotTo(HaveOccurred())
	return m
}

var _ = throughEachDoor("Merges of merge requests", func(d *door) {
	It("merge, squash and remove the source branch", func() {
		team, history := d.cloned()
		project, c := team.project.ID, d.as(maintainer).MergeRequests
		m := d.newMergeable(project, "topic")
		Expect(m.DetailedMergeStatus).To(Equal("mergeable"))
		Expect(m.ChangesCount).To(Equal("1"))
		merged, r, err := c.AcceptMergeRequest(team.project.PathWithNamespace, m.IID, &gitlab.AcceptMergeRequestOptions{
			MergeCommitMessage: gitlab.Ptr("Merge it"), SquashCommitMessage: gitlab.Ptr("Squash it"), Squash: gitlab.Ptr(true),
			ShouldRemoveSourceBranch: gitlab.Ptr(true), SHA: &m.SHA,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(merged.State).To(Equal("merged"))
		Expect(merged.MergeUser.ID).To(Equal(maintainer.id))
		Expect(merged.MergedAt).NotTo(BeNil())
		history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), "+main:fetched")
		Expect(history.Git(GinkgoTB(), "log", "-1", "--format=%H %P %s", "fetched")).To(Equal(fmt.Sprintf("%s %s %s Merge it",
			merged.MergeCommitSHA, history.Git(GinkgoTB(), "rev-parse", "main"), merged.SquashCommitSHA)))
		Expect(history.Git(GinkgoTB(), "log", "-1", "--format=%s", merged.SquashCommitSHA)).To(Equal("Squash it"))
		_, _, err = d.as(maintainer).Branches.GetBranch(project, "topic")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), fmt.Sprintf("refs/merge-requests/%d/head", m.IID))
		Expect(history.Git(GinkgoTB(), "rev-parse", "FETCH_HEAD")).To(Equal(m.SHA))
	})

	It("are made by a push of the source branch to the target branch", func() {
		team, history := d.cloned()
		m := d.newMergeable(team.project.ID, "topic")
		history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), "topic")
		history.Git(GinkgoTB(), "push", "--quiet", remote(team.project), "FETCH_HEAD:main")
		Eventually(func(g Gomega) {
			got, _, err := d.as(maintainer).MergeRequests.GetMergeRequest(team.project.ID, m.IID, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]any{got.State, got.MergeCommitSHA}).To(Equal([]any{"merged", m.SHA}))
			g.Expect(got.MergeUser).To(HaveField("ID", root.id))
		}).Should(Succeed())
	})

	It("wait for a pipeline, and begin once it succeeds", func() {
		team, p := d.newPipelines()
		project, c := team.project.ID, d.as(maintainer).MergeRequests
		m, _, err := d.as(developer).MergeRequests.CreateMergeRequest(project, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Add CI"), SourceBranch: gitlab.Ptr("topic"), TargetBranch: gitlab.Ptr("main"),
		})
		Expect(err).NotTo(HaveOccurred())
		changed, _, err := d.as(maintainer).Projects.EditProject(project, &gitlab.EditProjectOptions{OnlyAllowMergeIfPipelineSucceeds: gitlab.Ptr(true)})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.OnlyAllowMergeIfPipelineSucceeds).To(BeTrue())
		get := func() (*gitlab.MergeRequest, error) {
			m, _, err := c.GetMergeRequest(project, m.IID, nil)
			return m, err
		}
		Eventually(get).WithPolling(polling).Should(HaveField("DetailedMergeStatus", "ci_still_running"))
		Expect(get()).To(And(HaveField("HeadPipeline.ID", p.ID), HaveField("Pipeline.ID", p.ID)))
		listed, _, err := c.ListMergeRequestPipelines(project, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(HaveField("ID", p.ID)))

		later := &gitlab.AcceptMergeRequestOptions{AutoMerge: gitlab.Ptr(true)}
		waiting, r, err := c.AcceptMergeRequest(project, m.IID, later)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(waiting).To(And(HaveField("State", "opened"), HaveField("MergeWhenPipelineSucceeds", true), HaveField("MergeUser.ID", maintainer.id)))
		stopped, r, err := c.CancelMergeWhenPipelineSucceeds(project, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(stopped.MergeWhenPipelineSucceeds).To(BeFalse())
		_, _, err = c.AcceptMergeRequest(project, m.IID, later)
		Expect(err).NotTo(HaveOccurred())
		j := d.take(team.project)
		ended := send(d.as(nobody), fmt.Sprintf("PUT jobs/%d", j.ID), body(map[string]any{"token": j.Token, "state": "success"}))
		Expect(ended.StatusCode).To(Equal(200))
		Eventually(get).WithPolling(polling).Should(And(HaveField("State", "merged"), HaveField("MergeUser.ID", maintainer.id)))
	})

	It("have pipelines that are about them", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		project, c := team.project.ID, d.as(developer).MergeRequests
		work := gittest.New(GinkgoTB(), "sha1")
		work.Commit(GinkgoTB(), ".gitlab-ci.yml", "test: {script: make, only: [merge_requests]}\n")
		push(team.project, work)
		work.Git(GinkgoTB(), "checkout", "--quiet", "-b", "topic")
		work.Commit(GinkgoTB(), "new", "1\n")
		push(team.project, work)
		m, _, err := c.CreateMergeRequest(project, &gitlab.CreateMergeRequestOptions{
			Title: gitlab.Ptr("Add topic"), SourceBranch: gitlab.Ptr("topic"), TargetBranch: gitlab.Ptr("main"),
		})
		Expect(err).NotTo(HaveOccurred())
		is := And(HaveField("Source", BeEquivalentTo("merge_request_event")), HaveField("Ref", fmt.Sprintf("refs/merge-requests/%d/head", m.IID)), HaveField("SHA", m.SHA))
		Expect(m.HeadPipeline).To(is)
		made, r, err := c.CreateMergeRequestPipeline(project, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(made).To(is)
		listed, _, err := c.ListMergeRequestPipelines(project, m.IID)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed).To(HaveExactElements(HaveField("ID", made.ID), HaveField("ID", m.HeadPipeline.ID)))
	})

	It("refuse what cannot be merged, in the order of the API", func() {
		team, _ := d.cloned()
		project := team.project.ID
		m := d.newMergeable(project, "topic")
		accept := func(by *person, o gitlab.AcceptMergeRequestOptions) string {
			GinkgoHelper()
			_, r, err := d.as(by).MergeRequests.AcceptMergeRequest(project, m.IID, &o)
			Expect(err).To(HaveOccurred())
			return answered(r)
		}
		Expect(accept(guest, gitlab.AcceptMergeRequestOptions{SHA: gitlab.Ptr("no")})).To(HavePrefix(`401 {"message":"401 Unauthorized`))
		Expect(accept(maintainer, gitlab.AcceptMergeRequestOptions{AutoMerge: gitlab.Ptr(true), SHA: gitlab.Ptr("no")})).To(HavePrefix(
			`405 {"message":"405 Method Not Allowed"`))
		Expect(accept(maintainer, gitlab.AcceptMergeRequestOptions{SHA: gitlab.Ptr("no")})).To(HavePrefix(
			`409 {"message":"SHA does not match HEAD of source branch: ` + m.SHA))
		_, _, err := d.as(maintainer).Commits.CreateCommit(project, &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Rival"),
			Actions: []*gitlab.CommitActionOptions{{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("new-topic"), Content: gitlab.Ptr("2\n")}},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(accept(maintainer, gitlab.AcceptMergeRequestOptions{SHA: gitlab.Ptr("no")})).To(HavePrefix(`422 {"message":"Branch cannot be merged"`))
	})

	It("are tried for merge_ref, and rebase the source branch", func() {
		team, history := d.cloned()
		project, c := team.project.ID, d.as(developer)
		m := d.newMergeable(project, "topic")
		var tried struct {
			CommitID string `json:"commit_id"`
		}
		q, err := c.NewRequest("GET", fmt.Sprintf("projects/%d/merge_requests/%d/merge_ref", project, m.IID), nil, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = c.Do(q, &tried)
		Expect(err).NotTo(HaveOccurred())
		history.Git(GinkgoTB(), "fetch", "--quiet", remote(team.project), fmt.Sprintf("refs/merge-requests/%d/merge", m.IID))
		Expect(history.Git(GinkgoTB(), "rev-parse", "FETCH_HEAD")).To(Equal(tried.CommitID))

		_, _, err = d.as(maintainer).Commits.CreateCommit(project, &gitlab.CreateCommitOptions{
			Branch: gitlab.Ptr("main"), CommitMessage: gitlab.Ptr("Advance"),
			Actions: []*gitlab.CommitActionOptions{{Action: gitlab.Ptr(gitlab.FileCreate), FilePath: gitlab.Ptr("ahead"), Content: gitlab.Ptr("1\n")}},
		})
		Expect(err).NotTo(HaveOccurred())
		diverged := &gitlab.GetMergeRequestsOptions{IncludeDivergedCommitsCount: gitlab.Ptr(true), IncludeRebaseInProgress: gitlab.Ptr(true)}
		got, _, err := c.MergeRequests.GetMergeRequest(project, m.IID, diverged)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.DivergedCommitsCount).To(Equal(int64(1)))
		Expect(got.RebaseInProgress).To(BeFalse())
		r, err := c.MergeRequests.RebaseMergeRequest(project, m.IID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(202))
		got, _, err = c.MergeRequests.GetMergeRequest(project, m.IID, diverged)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.DivergedCommitsCount).To(BeZero())
		Expect(got.SHA).NotTo(Equal(m.SHA))
		Expect(got.MergeError).To(BeEmpty())
	})
})
