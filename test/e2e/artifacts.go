package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// The real runner stores artifacts, and the Go client reads them. The runner has registered itself.
var _ = Describe("Artifacts", Ordered, func() {
	var kiln factory
	var jobs gitlab.JobsServiceInterface
	const ref = "feature/glaze"

	BeforeAll(func(ctx context.Context) {
		soak.Only(GinkgoTB())
		checkout.Runner(ctx)
		kiln = factory{team: newTeam("kiln")}
		kiln.max = kiln.rest("max")
		forge := admin.Getenv("FORGEPLANE_URL")
		reset := rest.Must[struct{ Token string }](kiln.max, http.StatusCreated, "POST "+kiln.path("/runners/reset_registration_token"), "")
		credentials[reset.Token] = true
		own := checkout.RegisterRunner(ctx, forge, reset.Token)
		credentials[own] = true
		checkout.StartRunner(forge, own)
		client, err := gitlab.NewClient(token("kiln-max-rest"), gitlab.WithBaseURL(forge))
		Expect(err).NotTo(HaveOccurred())
		jobs = client.Jobs
		clone := kiln.start()
		clone.Git("checkout", "--quiet", "-b", ref)
		clone.Commit(".gitlab-ci.yml", `
stages: [fire, use]
fire:
  stage: fire
  script: [mkdir -p out/deep, echo pot > out/pot.txt, "echo '<p>' > out/deep/page.html", "echo '<testsuite/>' > report.xml"]
  artifacts: {name: "$CI_JOB_NAME-$CI_COMMIT_REF_SLUG", paths: [out], expire_in: 1 week, reports: {junit: report.xml}}
shards:
  stage: fire
  script: [mkdir out, echo shards > out/shards.txt, "false"]
  allow_failure: true
  artifacts: {paths: [out], when: always}
use:
  stage: use
  dependencies: [fire]
  script:
  - grep pot out/pot.txt
  - test ! -e out/shards.txt
  - curl --fail --silent --output pot --header "JOB-TOKEN:$CI_JOB_TOKEN" "$CI_API_V4_URL/projects/$CI_PROJECT_ID/jobs/artifacts/feature%2Fglaze/raw/out/pot.txt?job=fire" || echo "not yet successful"
`)
		clone.MustPush(ref)
	})

	// read reads a file that the Go client gets.
	read := func(r io.Reader, _ *gitlab.Response, err error) string {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(r)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	It("are read in each way", func() {
		Expect(kiln.trace(kiln.job("use", "success"))).To(ContainSubstring("not yet successful"))
		fired, project := kiln.job("fire", "success"), "kiln/app"
		o := &gitlab.DownloadArtifactsFileOptions{Job: gitlab.Ptr("fire")}
		var archive string
		Eventually(func(g Gomega) {
			byRef, _, err := jobs.DownloadArtifactsFile(project, ref, o)
			g.Expect(err).NotTo(HaveOccurred(), "the pipeline is successful in a moment")
			archive = read(byRef, nil, err)
		}).WithPolling(polling).Should(Succeed())
		z, err := zip.NewReader(bytes.NewReader([]byte(archive)), int64(len(archive)))
		Expect(err).NotTo(HaveOccurred())
		names := []string{}
		for _, f := range z.File {
			names = append(names, f.Name)
		}
		Expect(names).To(ConsistOf("out/", "out/deep/", "out/deep/page.html", "out/pot.txt"))
		Expect(read(jobs.GetJobArtifacts(project, fired.ID))).To(Equal(archive))
		Expect(read(jobs.DownloadSingleArtifactsFile(project, fired.ID, "out/pot.txt"))).To(Equal("pot\n"))
		Expect(read(jobs.DownloadSingleArtifactsFileByTagOrBranch(project, ref, "out/deep/page.html", o))).To(Equal("<p>\n"))
		Expect(read(jobs.GetJobArtifacts(project, kiln.job("shards", "failed").ID))).To(HavePrefix("PK"))
		shown, _, err := jobs.GetJob(project, fired.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown.ArtifactsFile.Filename).To(Equal("fire-feature-glaze.zip"))
		Expect(shown.Artifacts).To(ContainElements(HaveField("FileType", "archive"), HaveField("FileType", "junit")))
	})

	It("are kept and deleted", func() {
		fired, project := kiln.job("fire", "success"), "kiln/app"
		held, _, err := jobs.KeepArtifacts(project, fired.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(held.ArtifactsExpireAt).To(BeNil())
		_, err = jobs.DeleteProjectArtifacts(project)
		Expect(err).NotTo(HaveOccurred())
		Expect(read(jobs.GetJobArtifacts(project, fired.ID))).NotTo(BeEmpty(), "those of the latest successful pipeline stay")
		_, err = jobs.DeleteArtifacts(project, fired.ID)
		Expect(err).NotTo(HaveOccurred())
		_, _, err = jobs.GetJobArtifacts(project, fired.ID)
		Expect(err).To(MatchError(gitlab.ErrNotFound))
		Expect(kiln.trace(kiln.job("fire", "success"))).To(ContainSubstring("Job succeeded"), "logs stay")
	})
})
