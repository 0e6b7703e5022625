package conformance

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// newPipelines creates a team whose project has a pipeline of a push to topic: with the job build, the manual job deploy and the trigger job next.
func (d *door) newPipelines() (team, *gitlab.PipelineInfo) {
	GinkgoHelper()
	t := d.newTeam(gitlab.PrivateVisibility)
	c := gittest.New(GinkgoTB(), "sha1")
	c.Commit(GinkgoTB(), "README.md", "hello\n")
	push(t.project, c)
	c.Git(GinkgoTB(), "checkout", "--quiet", "-b", "topic")
	c.Commit(GinkgoTB(), ".gitlab-ci.yml", "workflow: {name: Test of $CI_COMMIT_BRANCH}\nbuild: {stage: build, script: make, tags: [linux]}\n"+
		"deploy: {stage: deploy, script: make deploy, when: manual}\nnext: {stage: deploy, trigger: acme/next, when: manual}\n")
	c.Git(GinkgoTB(), "push", "--quiet", remoteFor(t.project, developer.token), "topic")
	var found []*gitlab.PipelineInfo
	Eventually(func() []*gitlab.PipelineInfo {
		var err error
		found, _, err = d.as(developer).Pipelines.ListProjectPipelines(t.project.ID, &gitlab.ListProjectPipelinesOptions{Status: gitlab.Ptr(gitlab.Pending)})
		Expect(err).NotTo(HaveOccurred())
		return found
	}).WithPolling(polling).Should(HaveLen(1))
	return t, found[0]
}

var _ = throughEachDoor("Pipelines", func(d *door) {
	It("are created by a push, and found, canceled, retried and deleted", func() {
		team, pushed := d.newPipelines()
		c := d.as(developer).Pipelines
		Expect(pushed).To(And(HaveField("Ref", "topic"), HaveField("Source", "push"), HaveField("Name", "Test of topic"), HaveField("ProjectID", team.project.ID)))
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			p, _, err := c.GetPipeline(id, pushed.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(p).To(And(HaveField("SHA", pushed.SHA), HaveField("User.Username", developer.name), HaveField("Tag", false), HaveField("YamlErrors", ""),
				HaveField("DetailedStatus.Text", "pending"), HaveField("DetailedStatus.HasDetails", true)))
			latest, _, err := c.GetLatestPipeline(id, &gitlab.GetLatestPipelineOptions{Ref: gitlab.Ptr("topic")})
			Expect(err).NotTo(HaveOccurred())
			Expect(latest.ID).To(Equal(p.ID))
		}
		canceled, r, err := c.CancelPipelineBuild(team.project.ID, pushed.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(canceled.Status).To(Equal("canceled"))
		retried, r, err := c.RetryPipelineBuild(team.project.ID, pushed.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(retried.Status).To(Equal("pending"))
		r, err = d.as(maintainer).Pipelines.DeletePipeline(team.project.ID, pushed.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = d.as(owner).Pipelines.DeletePipeline(team.project.ID, pushed.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, _, err = c.GetPipeline(team.project.ID, pushed.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})

	It("are created with a trigger token, as soon as there is one", func() {
		team, _ := d.newPipelines()
		token := d.newTrigger(maintainer, team.project.ID, "Release robot")
		c := d.as(nobody).PipelineTriggers
		o := &gitlab.RunPipelineTriggerOptions{Ref: gitlab.Ptr("topic"), Token: &token.Token, Variables: map[string]string{"TARGET": "staging"}}
		for _, id := range []any{team.project.ID, team.project.PathWithNamespace} {
			p, r, err := c.RunPipelineTrigger(id, o)
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(p).To(And(HaveField("Source", gitlab.PipelineSource("trigger")), HaveField("Status", "created"), HaveField("User.Username", maintainer.name)))
			given, _, err := d.as(maintainer).Pipelines.GetPipelineVariables(id, p.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(given).To(HaveExactElements(And(HaveField("Key", "TARGET"), HaveField("Value", "staging")),
				And(HaveField("Key", "TRIGGER_PAYLOAD"), HaveField("VariableType", gitlab.FileVariableType), HaveField("Value", Not(ContainSubstring(token.Token))))))
		}
		r := send(d.as(nobody), fmt.Sprintf("POST projects/%d/ref/topic/trigger/pipeline?token=%s", team.project.ID, token.Token), "")
		Expect(r.StatusCode).To(Equal(201))
		Eventually(func() *time.Time {
			shown, _, err := d.as(maintainer).PipelineTriggers.GetPipelineTrigger(team.project.ID, token.ID)
			Expect(err).NotTo(HaveOccurred())
			return shown.LastUsed
		}).WithPolling(polling).Should(HaveValue(BeTemporally("~", time.Now(), time.Minute)))

		o.Token = gitlab.Ptr(token.Token + "x")
		_, r, err := c.RunPipelineTrigger(team.project.ID, o)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`404 {"message":"404 Not Found"}`))
	})

	It("are created with the token of a job, as a parameter or in its own header", func() {
		team, _ := d.newPipelines()
		job := d.take(team.project)
		trigger := func(target string, options ...gitlab.RequestOptionFunc) *gitlab.Response {
			GinkgoHelper()
			return send(d.as(nobody), fmt.Sprintf("POST projects/%d/%s", team.project.ID, target), "", options...)
		}
		header := gitlab.WithHeader("JOB-TOKEN", job.Token)
		for _, r := range []*gitlab.Response{
			trigger("trigger/pipeline?ref=topic&token=" + job.Token), trigger("trigger/pipeline?ref=topic", header), trigger("ref/topic/trigger/pipeline", header),
		} {
			Expect(answered(r)).To(And(HavePrefix("201 "), ContainSubstring(`"source":"pipeline"`), ContainSubstring(fmt.Sprintf(`"username":%q`, developer.name))))
		}
		Expect(answered(trigger("trigger/pipeline?ref=topic"))).To(Equal(`400 {"error":"token is missing"}`))
		Expect(answered(trigger("trigger/pipeline?ref=topic", gitlab.WithHeader("JOB-TOKEN", "not-of-a-job")))).To(Equal(`400 {"error":"token is missing"}`))
	})

	It("are created by a request with variables", func() {
		team, _ := d.newPipelines()
		c := d.as(developer).Pipelines
		p, r, err := c.CreatePipeline(team.project.ID, &gitlab.CreatePipelineOptions{
			Ref: gitlab.Ptr("topic"), Variables: &[]*gitlab.PipelineVariableOptions{{Key: gitlab.Ptr("TARGET"), Value: gitlab.Ptr("x"), VariableType: gitlab.Ptr(gitlab.FileVariableType)}},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(p).To(And(HaveField("Status", "created"), HaveField("Source", gitlab.PipelineSource("api"))))
		all, _, err := c.GetPipelineVariables(team.project.ID, p.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveExactElements(HaveValue(Equal(gitlab.PipelineVariable{Key: "TARGET", Value: "x", VariableType: gitlab.FileVariableType}))))
		_, r, err = c.CreatePipeline(team.project.ID, &gitlab.CreatePipelineOptions{Ref: gitlab.Ptr("none")})
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":{"base":["Reference not found"]}}`))
		_, r, err = d.as(guest).Pipelines.CreatePipeline(team.project.ID, &gitlab.CreatePipelineOptions{Ref: gitlab.Ptr("topic")})
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403))
	})

	It("have jobs, which are canceled, retried, erased and played", func() {
		team, p := d.newPipelines()
		c := d.as(developer).Jobs
		jobs, _, err := c.ListPipelineJobs(team.project.ID, p.ID, &gitlab.ListJobsOptions{Scope: &[]gitlab.BuildStateValue{gitlab.Pending}})
		Expect(err).NotTo(HaveOccurred())
		Expect(jobs).To(HaveExactElements(And(HaveField("Name", "build"), HaveField("TagList", []string{"linux"}), HaveField("Commit.ID", p.SHA), HaveField("Pipeline.ID", p.ID))))
		bridges, _, err := c.ListPipelineBridges(team.project.ID, p.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(bridges).To(HaveExactElements(And(HaveField("Name", "next"), HaveField("Status", "created"))))
		build := jobs[0].ID
		_, r, err := c.EraseJob(team.project.ID, build)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden - Job is not erasable!"}`))
		canceled, r, err := c.CancelJob(team.project.ID, build)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(canceled.Status).To(Equal("canceled"))
		erased, r, err := c.EraseJob(team.project.ID, build)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(erased.ErasedAt).NotTo(BeNil())
		again, r, err := c.RetryJob(team.project.ID, build)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		Expect(again).To(And(HaveField("ID", Not(Equal(build))), HaveField("Status", "pending")))
		got, _, err := c.GetJob(team.project.ID, again.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.WebURL).To(HaveSuffix(fmt.Sprintf("/-/jobs/%d", again.ID)))

		all, _, err := c.ListProjectJobs(team.project.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveExactElements(HaveField("ID", again.ID), HaveField("Name", "deploy"), HaveField("ID", build)))
		_, r, err = c.PlayJob(team.project.ID, all[1].ID, nil)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`400 {"message":"400 Bad request - Unplayable Job"}`))
	})

	It("have manual jobs, which are played", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := gittest.New(GinkgoTB(), "sha1")
		c.Commit(GinkgoTB(), ".gitlab-ci.yml", "deploy: {script: make deploy, when: manual}\n")
		push(team.project, c)
		p, _, err := d.as(maintainer).Pipelines.CreatePipeline(team.project.ID, &gitlab.CreatePipelineOptions{Ref: gitlab.Ptr("main")})
		Expect(err).NotTo(HaveOccurred())
		jobs, _, err := d.as(maintainer).Jobs.ListPipelineJobs(team.project.ID, p.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(jobs).To(HaveExactElements(And(HaveField("Status", "manual"), HaveField("AllowFailure", true))))
		_, r, err := d.as(developer).Jobs.PlayJob(team.project.ID, jobs[0].ID, nil)
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403), "the default branch is protected")
		played, r, err := d.as(maintainer).Jobs.PlayJob(team.project.ID, jobs[0].ID, &gitlab.PlayJobOptions{
			JobVariablesAttributes: &[]*gitlab.JobVariableOptions{{Key: gitlab.Ptr("A"), Value: gitlab.Ptr("b")}},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(played.Status).To(Equal("pending"))
	})

	It("are canceled by the next push, if their jobs are interruptible", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := gittest.New(GinkgoTB(), "sha1")
		first := c.Commit(GinkgoTB(), ".gitlab-ci.yml", "build: {script: make, interruptible: true}\n")
		push(team.project, c)
		statuses := func() map[string]string {
			all, _, err := d.as(developer).Pipelines.ListProjectPipelines(team.project.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			found := map[string]string{}
			for _, p := range all {
				found[p.SHA] = p.Status
			}
			return found
		}
		Eventually(statuses).WithPolling(polling).Should(Equal(map[string]string{first: "pending"}))
		second := c.Commit(GinkgoTB(), "README.md", "hello\n")
		push(team.project, c)
		Eventually(statuses).WithPolling(polling).Should(Equal(map[string]string{first: "canceled", second: "pending"}))
	})

	It("trigger child pipelines, and end with them", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		c := gittest.New(GinkgoTB(), "sha1")
		c.Commit(GinkgoTB(), "child.yml", "inner: {script: make}\n")
		c.Commit(GinkgoTB(), ".gitlab-ci.yml", "next: {trigger: {include: child.yml, strategy: depend}}\n")
		push(team.project, c)
		p, _, err := d.as(maintainer).Pipelines.CreatePipeline(team.project.ID, &gitlab.CreatePipelineOptions{Ref: gitlab.Ptr("main")})
		Expect(err).NotTo(HaveOccurred())
		bridge := func() *gitlab.Bridge {
			all, _, err := d.as(developer).Jobs.ListPipelineBridges(team.project.ID, p.ID, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(all).To(HaveLen(1))
			return all[0]
		}
		Eventually(bridge).WithPolling(polling).Should(And(HaveField("Status", "running"), HaveField("DownstreamPipeline", Not(BeNil()))))
		child := bridge().DownstreamPipeline
		Expect(child).To(And(HaveField("Source", "parent_pipeline"), HaveField("SHA", p.SHA), HaveField("Status", "pending")))
		jobs, _, err := d.as(developer).Jobs.ListPipelineJobs(team.project.ID, child.ID, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(jobs).To(HaveExactElements(HaveField("Name", "inner")))
		_, _, err = d.as(maintainer).Pipelines.CancelPipelineBuild(team.project.ID, child.ID)
		Expect(err).NotTo(HaveOccurred())
		Eventually(bridge).WithPolling(polling).Should(HaveField("Status", "failed"))
		Eventually(func() (*gitlab.Pipeline, error) {
			parent, _, err := d.as(developer).Pipelines.GetPipeline(team.project.ID, p.ID)
			return parent, err
		}).WithPolling(polling).Should(HaveField("Status", "failed"))
	})

	It("have statuses that other systems report", func() {
		team, p := d.newPipelines()
		c := d.as(developer).Commits
		for _, state := range []gitlab.BuildStateValue{gitlab.Running, gitlab.Success} {
			reported, r, err := c.SetCommitStatus(team.project.ID, p.SHA, &gitlab.SetCommitStatusOptions{
				State: state, Context: gitlab.Ptr("ci/external"), Ref: gitlab.Ptr("topic"), TargetURL: gitlab.Ptr("https://ci.example/1"), Coverage: gitlab.Ptr(98.5),
			})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.StatusCode).To(Equal(201))
			Expect(reported).To(And(HaveField("Status", string(state)), HaveField("PipelineID", p.ID), HaveField("Coverage", 98.5), HaveField("Author.Username", developer.name)))
		}
		all, _, err := c.GetCommitStatuses(team.project.ID, p.SHA, &gitlab.GetCommitStatusesOptions{Name: gitlab.Ptr("ci/external")})
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveExactElements(And(HaveField("Status", "success"), HaveField("TargetURL", "https://ci.example/1"))))
		shown, _, err := c.GetCommit(team.project.ID, p.SHA, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown.LastPipeline).To(HaveField("ID", p.ID))
	})
})
