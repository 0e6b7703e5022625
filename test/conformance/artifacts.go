package conformance

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/internal/git/gittest"
)

// taken is a job that a runner executes.
type taken struct {
	ID           int64
	Token        string
	Dependencies []struct {
		ID    int64
		Token string
	}
}

// take makes a new runner of a project take the next job.
func (d *door) take(project *gitlab.Project) taken {
	GinkgoHelper()
	made := d.newRunner(project, "linux")
	var job taken
	Eventually(func() int {
		asked := send(d.as(nobody), "POST jobs/request", body(map[string]any{"token": made.Token}))
		if asked.StatusCode == 201 {
			Expect(json.Unmarshal([]byte(asked.Body.(*kept).text), &job)).To(Succeed())
		}
		return asked.StatusCode
	}).WithPolling(polling).Should(Equal(201))
	return job
}

// upload stores an archive with the file dir/notes.txt for a job, and ends the job.
func (d *door) upload(j taken, text string) (archive string) {
	GinkgoHelper()
	var packed, form bytes.Buffer
	z := zip.NewWriter(&packed)
	into, err := z.Create("dir/notes.txt")
	Expect(err).NotTo(HaveOccurred())
	_, err = io.WriteString(into, text)
	Expect(err).NotTo(HaveOccurred())
	Expect(z.Close()).To(Succeed())
	w := multipart.NewWriter(&form)
	into, err = w.CreateFormFile("file", "artifacts.zip")
	Expect(err).NotTo(HaveOccurred())
	_, err = into.Write(packed.Bytes())
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	sent := send(d.as(nobody), fmt.Sprintf("POST jobs/%d/artifacts?artifact_type=archive&artifact_format=zip&expire_in=1+week", j.ID), form.String(),
		gitlab.WithHeader("JOB-TOKEN", j.Token), gitlab.WithHeader("Content-Type", w.FormDataContentType()))
	Expect(answered(sent)).To(Equal("201"))
	return packed.String()
}

// end reports the success of a job.
func (d *door) end(j taken) {
	GinkgoHelper()
	Expect(send(d.as(nobody), fmt.Sprintf("PUT jobs/%d", j.ID), body(map[string]any{"token": j.Token, "state": "success"})).StatusCode).To(Equal(200))
}

var _ = throughEachDoor("Job artifacts", func(d *door) {
	It("are stored by a runner, and read, kept and deleted", func() {
		t := d.newTeam(gitlab.PrivateVisibility)
		c := gittest.New(GinkgoTB(), "sha1")
		c.Commit(GinkgoTB(), "README.md", "hello\n")
		push(t.project, c)
		c.Git(GinkgoTB(), "checkout", "--quiet", "-b", "feature/x")
		c.Commit(GinkgoTB(), ".gitlab-ci.yml", "build: {stage: build, script: make, tags: [linux], artifacts: {paths: [dir/], expire_in: 1 week}}\n"+
			"test: {stage: test, script: make test, tags: [linux]}\n")
		c.Git(GinkgoTB(), "push", "--quiet", remoteFor(t.project, developer.token), "feature/x")
		build := d.take(t.project)
		archive := d.upload(build, "of the build")
		d.end(build)
		test := d.take(t.project)
		Expect(test.Dependencies).To(HaveExactElements(And(HaveField("ID", build.ID), HaveField("Token", test.Token))))
		got := send(d.as(nobody), fmt.Sprintf("GET jobs/%d/artifacts?direct_download=true", build.ID), "", gitlab.WithHeader("JOB-TOKEN", test.Token))
		Expect(got.Body.(*kept).text).To(Equal(archive))
		byJob, _, err := d.as(nobody).Jobs.DownloadSingleArtifactsFile(t.project.ID, build.ID, "dir/notes.txt", gitlab.WithHeader("JOB-TOKEN", test.Token))
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(byJob)).To(BeEquivalentTo("of the build"))
		d.end(test)

		jobs := d.as(developer).Jobs
		whole, r, err := jobs.GetJobArtifacts(t.project.ID, build.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(whole)).To(BeEquivalentTo(archive))
		Expect(r.Header).To(HaveKeyWithValue("Content-Disposition", []string{`attachment; filename="artifacts.zip"; filename*=UTF-8''artifacts.zip`}))
		o := &gitlab.DownloadArtifactsFileOptions{Job: gitlab.Ptr("build")}
		whole, _, err = jobs.DownloadArtifactsFile(t.project.ID, "feature/x", o)
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(whole)).To(BeEquivalentTo(archive))
		one, _, err := jobs.DownloadSingleArtifactsFile(t.project.ID, build.ID, "dir/notes.txt")
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(one)).To(BeEquivalentTo("of the build"))
		one, r, err = jobs.DownloadSingleArtifactsFileByTagOrBranch(t.project.ID, "feature/x", "dir/notes.txt", o)
		Expect(err).NotTo(HaveOccurred())
		Expect(io.ReadAll(one)).To(BeEquivalentTo("of the build"))
		Expect(r.Header.Get("Content-Type")).To(HavePrefix("text/plain"))
		_, r, err = jobs.DownloadSingleArtifactsFile(t.project.ID, build.ID, "missing.txt")
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(r.StatusCode).To(Equal(404))

		shown, _, err := jobs.GetJob(t.project.ID, build.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown.ArtifactsFile).To(And(HaveField("Filename", "artifacts.zip"), HaveField("Size", int64(len(archive)))))
		Expect(shown.Artifacts).To(HaveExactElements(And(HaveField("FileType", "archive"), HaveField("FileFormat", "zip"))))
		Expect(shown.ArtifactsExpireAt).NotTo(BeNil())
		held, r, err := jobs.KeepArtifacts(t.project.ID, build.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.StatusCode).To(Equal(200))
		Expect(held.ArtifactsExpireAt).To(BeNil())

		r, err = jobs.DeleteProjectArtifacts(t.project.ID)
		Expect(err).To(HaveOccurred())
		Expect(answered(r)).To(Equal(`403 {"message":"403 Forbidden"}`))
		r, err = d.as(maintainer).Jobs.DeleteProjectArtifacts(t.project.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal(`202 {"message":"202 Accepted"}`))
		_, _, err = jobs.GetJobArtifacts(t.project.ID, build.ID)
		Expect(err).NotTo(HaveOccurred(), "the artifacts of the latest successful pipeline stay")
		r, err = d.as(maintainer).Jobs.DeleteArtifacts(t.project.ID, build.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(answered(r)).To(Equal("204"))
		_, _, err = jobs.GetJobArtifacts(t.project.ID, build.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
	})
})
