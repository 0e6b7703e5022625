package conformance

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// newRunner creates a runner of a project as the maintainer, for jobs with a tag.
func (d *door) newRunner(project *gitlab.Project, tag string) *gitlab.UserRunner {
	GinkgoHelper()
	made, r, err := d.as(maintainer).Users.CreateUserRunner(&gitlab.CreateUserRunnerOptions{
		RunnerType: gitlab.Ptr("project_type"), ProjectID: &project.ID, Description: gitlab.Ptr("Builder"), TagList: &[]string{tag},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.StatusCode).To(Equal(201))
	Expect(made.Token).To(HavePrefix("glrt-"))
	return made
}

// body returns the body of a request as JSON.
func body(of map[string]any) string {
	GinkgoHelper()
	text, err := json.Marshal(of)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = throughEachDoor("Runners", func(d *door) {
	It("are created, found, changed, assigned and deleted", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newRunner(team.project, "linux")
		c := d.as(maintainer).Runners
		got, _, err := c.GetRunnerDetails(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(And(HaveField("Description", "Builder"), HaveField("RunnerType", "project_type"), HaveField("TagList", []string{"linux"}),
			HaveField("Status", "never_contacted"), HaveField("Projects", HaveExactElements(HaveField("ID", team.project.ID))), HaveField("Token", "")))
		_, err = c.VerifyRegisteredRunner(&gitlab.VerifyRegisteredRunnerOptions{Token: &made.Token})
		Expect(err).NotTo(HaveOccurred())

		is := HaveExactElements(And(HaveField("ID", made.ID), HaveField("Status", "online"), HaveField("Online", true)))
		o := &gitlab.ListRunnersOptions{TagList: &[]string{"linux"}, Status: gitlab.Ptr("online")}
		mine, _, err := c.ListRunners(o)
		Expect(err).NotTo(HaveOccurred())
		Expect(mine).To(ContainElement(HaveField("ID", made.ID)))
		all, _, err := d.as(root).Runners.ListAllRunners(o)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(ContainElement(HaveField("ID", made.ID)))
		ofProject, _, err := c.ListProjectRunners(team.project.ID, &gitlab.ListProjectRunnersOptions{Type: gitlab.Ptr("project_type")})
		Expect(err).NotTo(HaveOccurred())
		Expect(ofProject).To(is)
		ofGroup, _, err := d.as(owner).Runners.ListGroupsRunners(team.group.ID, &gitlab.ListGroupsRunnersOptions{Type: gitlab.Ptr("group_type")})
		Expect(err).NotTo(HaveOccurred())
		Expect(ofGroup).To(BeEmpty())

		changed, _, err := c.UpdateRunnerDetails(made.ID, &gitlab.UpdateRunnerDetailsOptions{
			Description: gitlab.Ptr("Slow"), Paused: gitlab.Ptr(true), AccessLevel: gitlab.Ptr("ref_protected"), MaximumTimeout: gitlab.Ptr(int64(3600)),
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed).To(And(HaveField("Description", "Slow"), HaveField("Paused", true), HaveField("AccessLevel", "ref_protected"), HaveField("MaximumTimeout", int64(3600))))

		other := d.newProject(team.group.ID, gitlab.PrivateVisibility)
		_, r, err := c.EnableProjectRunner(other.ID, &gitlab.EnableProjectRunnerOptions{RunnerID: made.ID})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		r, err = c.DisableProjectRunner(other.ID, made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		r, err = c.DisableProjectRunner(team.project.ID, made.ID)
		Expect(err).To(HaveOccurred())
		Expect(r.StatusCode).To(Equal(403), "it would have no project any more")

		reset, r, err := c.ResetRunnerAuthenticationToken(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(201))
		_, err = c.VerifyRegisteredRunner(&gitlab.VerifyRegisteredRunnerOptions{Token: &made.Token})
		Expect(err).To(HaveOccurred(), "the former token")
		own := send(d.as(nobody), "POST runners/reset_authentication_token", body(map[string]any{"token": reset.Token}))
		Expect(own.StatusCode).To(Equal(201))
		r, err = d.as(developer).Runners.RemoveRunner(made.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = c.RemoveRunner(made.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
	})

	It("register themselves with the token of a project, a group or the installation", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		register := func(token string) (*gitlab.Runner, *gitlab.Response, error) {
			GinkgoHelper()
			return d.as(nobody).Runners.RegisterNewRunner(&gitlab.RegisterNewRunnerOptions{
				Token: &token, Description: gitlab.Ptr("Newcomer"), TagList: &[]string{"linux"}, MaximumTimeout: gitlab.Ptr(int64(3600)),
				Info: &gitlab.RegisterNewRunnerInfoOptions{Name: gitlab.Ptr("gitlab-runner")},
			})
		}
		// The Go client can do this as well, but its methods are deprecated.
		reset := func(c *gitlab.Client, of string) (token string) {
			GinkgoHelper()
			r := send(c, "POST "+of+"runners/reset_registration_token", "")
			Expect(r.StatusCode).To(Equal(201))
			var said struct{ Token string }
			Expect(json.Unmarshal([]byte(r.Body.(*kept).text), &said)).To(Succeed())
			return said.Token
		}
		ofProject := fmt.Sprintf("projects/%d/", team.project.ID)
		for kind, by := range map[string]struct {
			client *gitlab.Client
			of     string
		}{
			"project_type": {d.as(maintainer), ofProject}, "group_type": {d.as(owner), fmt.Sprintf("groups/%d/", team.group.ID)}, "instance_type": {d.as(root), ""},
		} {
			former := reset(by.client, by.of)
			made, r, err := register(former)
			Expect(err).NotTo(HaveOccurred(), kind)
			Expect(r.StatusCode).To(Equal(201))
			got, _, err := d.as(root).Runners.GetRunnerDetails(made.ID)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(And(HaveField("RunnerType", kind), HaveField("Description", "Newcomer"), HaveField("TagList", []string{"linux"}),
				HaveField("MaximumTimeout", int64(3600))))
			_, err = d.as(nobody).Runners.DeleteRegisteredRunner(&gitlab.DeleteRegisteredRunnerOptions{Token: &made.Token})
			Expect(err).NotTo(HaveOccurred(), "its token is its own")
			reset(by.client, by.of)
			_, r, err = register(former)
			Expect(err).To(HaveOccurred(), "the former token of %s", kind)
			Expect(r.StatusCode).To(Equal(403))
		}
		refused := send(d.as(developer), "POST "+ofProject+"runners/reset_registration_token", "")
		Expect(answered(refused)).To(Equal(`403 {"message":"403 Forbidden"}`))
	})

	It("remove themselves with their own token", func() {
		team := d.newTeam(gitlab.PrivateVisibility)
		made := d.newRunner(team.project, "linux")
		left := send(d.as(nobody), "DELETE runners/managers", body(map[string]any{"token": made.Token, "system_id": "s_1"}))
		Expect(answered(left)).To(Equal("204"))
		r, err := d.as(nobody).Runners.DeleteRegisteredRunner(&gitlab.DeleteRegisteredRunnerOptions{Token: &made.Token})
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, _, err = d.as(maintainer).Runners.GetRunnerDetails(made.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})

	It("execute jobs, and send their logs", func() {
		team, p := d.newPipelines()
		made := d.newRunner(team.project, "linux")
		verified := send(d.as(nobody), "POST runners/verify", body(map[string]any{"token": made.Token, "system_id": "s_1"}), gitlab.WithHeader("RUNNER-TOKEN", made.Token))
		Expect(verified.StatusCode).To(Equal(200))
		asked := send(d.as(nobody), "POST jobs/request", body(map[string]any{"token": made.Token, "info": map[string]any{"name": "gitlab-runner", "version": "18.0.0"}}))
		Expect(asked.StatusCode).To(Equal(201))
		var job struct {
			ID    int64
			Token string
			Git   struct {
				SHA string `json:"sha"`
			} `json:"git_info"`
			Steps []struct{ Script []string }
		}
		Expect(json.Unmarshal([]byte(asked.Body.(*kept).text), &job)).To(Succeed())
		Expect(job.Git.SHA).To(Equal(p.SHA))
		Expect(job.Steps[0].Script).To(Equal([]string{"make"}))
		again := send(d.as(nobody), "POST jobs/request", body(map[string]any{"token": made.Token}))
		Expect(again.StatusCode).To(Equal(204), "deploy is manual")

		sent := send(d.as(nobody), fmt.Sprintf("PATCH jobs/%d/trace?debug_trace=false", job.ID), "Hello\n", gitlab.WithHeader("JOB-TOKEN", job.Token),
			gitlab.WithHeader("Content-Type", "text/plain"), gitlab.WithHeader("Content-Range", "0-5"))
		Expect(sent.StatusCode).To(Equal(202))
		Expect(sent.Header).To(HaveKeyWithValue("Range", []string{"0-6"}))
		log, _, err := d.as(developer).Jobs.GetTraceFile(team.project.ID, job.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(log)).To(BeEquivalentTo("Hello\n"))
		end := func(log string) *gitlab.Response {
			GinkgoHelper()
			output := map[string]any{"bytesize": len(log), "checksum": fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE([]byte(log)))}
			return send(d.as(nobody), fmt.Sprintf("PUT jobs/%d", job.ID), body(map[string]any{"token": job.Token, "state": "success", "output": output}))
		}
		Expect(end("Hello\nGoodbye\n").StatusCode).To(Equal(412))
		Expect(end("Hello\n").StatusCode).To(Equal(200))
		shown, _, err := d.as(developer).Jobs.GetJob(team.project.ID, job.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown).To(And(HaveField("Status", "success"), HaveField("Runner.Description", "Builder")))
	})
})
