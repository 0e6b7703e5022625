package mergerequests_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/entity"
	"github.com/forgeplane/forgeplane/apiserver/launch"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/mergerequests"
	"github.com/forgeplane/forgeplane/internal/audit"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/internal/mergerequest"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// run is a pipeline with one job.
type run struct {
	pipeline.Pipeline
	job *pipeline.Job
	w   gitWorld
}

// pipeline creates a pipeline of a branch of a project, as dora. Its job waits for a runner.
func (w gitWorld) pipeline(project int64, branch string, changes ...func(*pipeline.Job)) run {
	w.t.Helper()
	r := run{
		pipeline.Pipeline{In: w.ProjectRow(project), Ref: branch, SHA: w.head(branch), Source: "push", User: w.UserRow("dora")},
		&pipeline.Job{Name: "test", Stage: "test", When: "on_success", Spec: &config.Job{}}, w,
	}
	for _, change := range changes {
		change(r.job)
	}
	err := w.Activity.Pipelines.Create(w.t.Context(), &r.Pipeline, []*pipeline.Job{r.job}, nil)
	if err == nil {
		_, err = w.Activity.Pipelines.Advance(w.t.Context(), r.ID)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// end ends the job, and runs the task that follows if a merge waits for the pipeline.
func (r run) end(result pipeline.Status) {
	r.w.t.Helper()
	ctx := r.w.t.Context()
	j, err := r.w.Activity.Pipelines.Begin(ctx, *r.job)
	if err == nil && result == pipeline.Success {
		_, err = r.w.Activity.Pipelines.Succeed(ctx, j)
	} else if err == nil {
		_, err = r.w.Activity.Pipelines.Fail(ctx, j, pipeline.Failure{Reason: "script_failure"})
	}
	if err != nil {
		r.w.t.Fatal(err)
	}
	r.ended()
}

// ended runs the task that follows the end of the pipeline, twice, because a task can run again although its work was done.
func (r run) ended() {
	r.w.t.Helper()
	for range 2 {
		if err := r.w.Work[pipeline.AwaitQueue].Run(r.w.t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(r.ID)}}, nil); err != nil {
			r.w.t.Fatal(err)
		}
	}
}

func TestHeadPipeline_isTheNewestOfTheHead(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	g.Expect(w.get(m)).To(And(HaveField("HeadPipeline", BeNil()), HaveField("Pipeline", BeNil())))
	w.pipeline(20, "topic")
	w.pipeline(20, "rival")
	newest := w.pipeline(20, "topic")
	newest.end(pipeline.Success)
	d := w.get(m)
	g.Expect(d.HeadPipeline).To(HaveValue(And(HaveField("ID", newest.ID), HaveField("Status", pipeline.Success), HaveField("User.Username", "dora"))))
	g.Expect(d.Pipeline.WebURL).To(HaveSuffix(fmt.Sprintf("/acme/web/-/pipelines/%d", newest.ID)))
	g.Expect(time.Time(d.LatestBuildStartedAt)).NotTo(BeZero())
	g.Expect(time.Time(d.LatestBuildFinishedAt)).NotTo(BeZero())
	w.web.Git(t, "update-ref", "refs/heads/topic", w.commit("topic", "topic"))
	g.Expect(w.get(m).HeadPipeline).To(BeNil(), "the branch has another commit")
	all := familytest.Decode[[]entity.Pipeline](t, w.As("rita", "GET /projects/20/merge_requests/1/pipelines", ""))
	g.Expect(all).To(HaveExactElements(HaveField("ID", newest.ID), HaveField("Ref", "topic")))
}

func TestHeadPipeline_ofForkIsHiddenFromThoseWhoCannotSeeIt(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(21, "topic", "main")
	p := w.pipeline(21, "topic")
	g.Expect(w.get(m).HeadPipeline).To(HaveValue(And(HaveField("ID", p.ID), HaveField("ProjectID", int64(21)))))
	edit(w, &v1alpha1.Project{}, "fork", func(p *v1alpha1.Project) { p.Spec.Pipelines.Public = new(bool) })
	g.Expect(w.done("pia", "GET /projects/20/merge_requests/1", "").HeadPipeline).To(BeNil())
	g.Expect(w.As("pia", "GET /projects/20/merge_requests/1/pipelines", "").Code).To(Equal(403))
	g.Expect(w.get(m).HeadPipeline).NotTo(BeNil(), "rita is a Reporter of both projects")
}

func TestPipeline_isCreatedWithMergeRequestAndOnDemand(t *testing.T) {
	c := branched(t)
	c.Git(t, "checkout", "--quiet", "topic")
	c.Commit(t, ".gitlab-ci.yml", "test: {script: make, rules: [{if: '$CI_MERGE_REQUEST_TARGET_BRANCH_NAME == \"main\"'}]}")
	g, w := NewWithT(t), newGitWorld(t, c)
	a := w.As("dora", "POST /projects/20/merge_requests", `{"title":"One","source_branch":"topic","target_branch":"main"}`)
	g.Expect(a.Code).To(Equal(201), a.Body)
	is := And(HaveField("Source", "merge_request_event"), HaveField("Ref", "refs/merge-requests/1/head"), HaveField("Status", pipeline.Pending))
	g.Expect(familytest.Decode[mergerequests.Detailed](t, a).Pipeline).To(HaveValue(is))
	other := w.As("dora", "POST /projects/20/merge_requests", `{"title":"Two","source_branch":"topic","target_branch":"stable"}`)
	g.Expect(familytest.Decode[mergerequests.Detailed](t, other).Pipeline).To(BeNil(), "the rules want none")

	const ofFirst = "/projects/20/merge_requests/1/pipelines"
	made := w.As("dora", "POST "+ofFirst, "")
	g.Expect(made.Code).To(Equal(201), made.Body)
	g.Expect(familytest.Decode[entity.Pipeline](t, made)).To(And(HaveField("Source", "merge_request_event"), HaveField("Status", pipeline.Created)))
	g.Expect(familytest.Decode[[]entity.Pipeline](t, w.As("rita", "GET "+ofFirst, ""))).To(HaveExactElements(is, is))
	g.Expect(w.As("rita", "POST "+ofFirst, "").Code).To(Equal(403))
	g.Expect(w.As("dora", "POST /projects/20/merge_requests/2/pipelines", "")).To(And(HaveField("Code", 400), HaveField("Body", ContainSubstring("base"))))
}

func TestMerge_needsPipelineIfTheProjectSaysSo(t *testing.T) {
	w := newGitWorld(t, branched(t))
	w.configure(func(s *v1alpha1.MergeRequests) { s.RequirePipeline = true })
	m := w.request(20, "topic", "main")
	expect := func(status string) {
		t.Helper()
		NewWithT(t).Expect(w.get(m).DetailedMergeStatus).To(Equal(status))
		NewWithT(t).Expect(w.merge("dora", m, "")).To(And(HaveField("Code", 405), HaveField("Body", ContainSubstring(status))))
	}
	expect("ci_must_pass")
	w.pipeline(20, "topic").end(pipeline.Failed)
	expect("ci_must_pass")
	p := w.pipeline(20, "topic")
	expect("ci_still_running")
	p.end(pipeline.Success)
	NewWithT(t).Expect(w.get(m).DetailedMergeStatus).To(Equal("mergeable"))
	NewWithT(t).Expect(w.merge("dora", m, "").Code).To(Equal(200))
}

func TestAutoMerge_mergesOncePipelineSucceeds(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	main := w.head("main")
	p := w.pipeline(20, "topic")
	d := w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"auto_merge":true,"squash":true,"squash_commit_message":"One","should_remove_source_branch":true}`)
	g.Expect(d).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeWhenPipelineSucceeds", true), HaveField("MergeUser.Username", "dora")))
	g.Expect(w.head("main")).To(Equal(main))
	p.end(pipeline.Success)
	g.Expect(w.get(m)).To(And(HaveField("State", mergerequest.Merged), HaveField("MergeUser.Username", "dora")))
	g.Expect(w.web.Git(t, "log", "-1", "--format=%s", "main^2")).To(Equal("One"))
	_, err := w.web.Try("rev-parse", "--verify", "refs/heads/topic")
	g.Expect(err).To(HaveOccurred(), "the branch is deleted")
	written := func(name string) any { return And(HaveField("Name", name), HaveField("Result", audit.Done)) }
	g.Expect(w.lines.Events()).To(HaveExactElements(And(
		HaveField("Door", audit.Controller), HaveField("Action", "merge"), HaveField("Result", audit.Done), HaveField("User.Username", "dora"),
		HaveField("About.Path", "acme/web"), HaveField("Objects", HaveExactElements(HaveField("Name", "acme/web!1"))),
		HaveField("Refs", HaveExactElements(written("refs/heads/main"), written("refs/heads/topic"))),
	)))
}

func TestAutoMerge_mergesAtOnceIfPipelineHasSucceeded(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	w.request(20, "topic", "main")
	w.pipeline(20, "topic").end(pipeline.Success)
	g.Expect(w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"merge_when_pipeline_succeeds":true}`).State).To(Equal(mergerequest.Merged))
}

func TestAutoMerge_isRefused(t *testing.T) {
	for reason, prepare := range map[string]func(w gitWorld){
		"no pipeline":       func(gitWorld) {},
		"has not succeeded": func(w gitWorld) { w.pipeline(20, "topic").end(pipeline.Failed) },
		"draft_status": func(w gitWorld) {
			w.pipeline(20, "topic")
			w.As("dora", "PUT /projects/20/merge_requests/1", `{"title":"Draft: Later"}`)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			prepare(w)
			g.Expect(w.merge("dora", m, `{"auto_merge":true}`)).To(And(HaveField("Code", 405), HaveField("Body", ContainSubstring(reason))))
			g.Expect(w.get(m).MergeWhenPipelineSucceeds).To(BeFalse())
		})
	}
}

func TestAutoMerge_ends(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(g Gomega, w gitWorld)
		reason string
	}{
		"with a push": {change: func(_ Gomega, w gitWorld) {
			w.web.Git(w.t, "update-ref", "refs/heads/topic", w.commit("topic", "topic"))
			w.done("rita", "GET /projects/20/merge_requests/1", "")
		}},
		"when the merge request is closed": {change: func(_ Gomega, w gitWorld) {
			w.done("dora", "PUT /projects/20/merge_requests/1", `{"state_event":"close"}`)
			w.done("dora", "PUT /projects/20/merge_requests/1", `{"state_event":"reopen"}`)
		}},
		"when it is canceled": {change: func(g Gomega, w gitWorld) {
			const cancel = "POST /projects/20/merge_requests/1/cancel_merge_when_pipeline_succeeds"
			g.Expect(w.As("dora", cancel, "").Code).To(Equal(201))
			g.Expect(w.As("dora", cancel, "").Code).To(Equal(406))
		}},
		"if it is a draft by then": {change: func(_ Gomega, w gitWorld) {
			w.done("dora", "PUT /projects/20/merge_requests/1", `{"title":"Draft: Later"}`)
		}, reason: "draft_status"},
		"if the user cannot merge any more": {change: func(_ Gomega, w gitWorld) {
			edit(w, &v1alpha1.Membership{}, "in-acme-dora", func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleReporter })
		}, reason: "401"},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newGitWorld(t, branched(t))
			m := w.request(20, "topic", "main")
			p := w.pipeline(20, "topic")
			g.Expect(w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"auto_merge":true}`).MergeWhenPipelineSucceeds).To(BeTrue())
			tt.change(g, w)
			p.end(pipeline.Success)
			g.Expect(w.get(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeWhenPipelineSucceeds", false)))
			g.Expect(w.read(m).MergeError).To(ContainSubstring(tt.reason))
		})
	}
}

func TestAutoMerge_waitsForRetryAndForNewerPipeline(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	m := w.request(20, "topic", "main")
	first := w.pipeline(20, "topic")
	w.done("dora", "PUT /projects/20/merge_requests/1/merge", `{"auto_merge":true}`)
	first.end(pipeline.Failed)
	g.Expect(w.get(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeWhenPipelineSucceeds", true)))
	second := w.pipeline(20, "topic")
	first.ended() // the creation of another pipeline adds the task again
	g.Expect(w.get(m)).To(And(HaveField("State", mergerequest.Opened), HaveField("MergeWhenPipelineSucceeds", true)))
	second.end(pipeline.Success)
	g.Expect(w.get(m).State).To(Equal(mergerequest.Merged))
}

func TestDeployments_areOfTheMergedMergeRequests(t *testing.T) {
	g, w := NewWithT(t), newGitWorld(t, branched(t))
	deploy := func(environment, tier string) {
		t.Helper()
		p := w.pipeline(20, "main", func(j *pipeline.Job) { j.Environment, j.Tier = environment, tier })
		p.end(pipeline.Success)
		for range 2 { // a task can run again although its work was done
			g.Expect(launch.New(w.Kit).Deployed(t.Context(), job.Attempt{Task: job.Task{Key: fmt.Sprint(p.job.ID)}}, nil)).To(Succeed())
		}
	}
	list := func(query string) (iids []int64) {
		t.Helper()
		for _, m := range familytest.Decode[[]mergerequests.MergeRequest](t, w.As("rita", "GET /projects/20/merge_requests?"+query, "")) {
			iids = append(iids, m.IID)
		}
		return iids
	}
	deploy("live", mergerequest.Production)
	first := w.request(20, "topic", "main")
	w.done("dora", "PUT /projects/20/merge_requests/1/merge", "")
	deploy("staging", "staging")
	g.Expect(list("environment=staging")).To(Equal([]int64{1}))
	g.Expect(list("environment=live")).To(BeEmpty())
	g.Expect(time.Time(w.get(first).FirstDeployedAt)).To(BeZero())
	deploy("live", mergerequest.Production)
	g.Expect(list("environment=live")).To(Equal([]int64{1}))
	g.Expect(time.Time(w.get(first).FirstDeployedAt)).To(BeTemporally("~", w.Clock.Now(), time.Second))

	w.web.Git(t, "update-ref", "refs/heads/more", w.commit("main", "closed"))
	w.request(20, "more", "main")
	w.done("dora", "PUT /projects/20/merge_requests/2/merge", "")
	deploy("live", mergerequest.Production)
	g.Expect(list("environment=live")).To(Equal([]int64{2, 1}))
	var deployments int64
	err := w.Activity.Database.Read(t.Context(), "counting", func(ctx context.Context, db bun.IDB) (err error) {
		deployments, err = db.NewSelect().TableExpr("merge_request_deployments").Where("merge_request_id = ?", first.ID).Count(ctx)
		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(deployments).To(Equal(int64(2)), "the last deployment brings only what the one before it has not")
}
