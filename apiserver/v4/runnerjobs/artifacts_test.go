package runnerjobs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/runnerjobs"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/pipeline"
	"github.com/forgeplane/forgeplane/internal/runner"

	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
)

// keeping has jobs with artifacts: a and b in the first stage, and those after them that get them or not.
const keeping = `
stages: [build, test]
a: {stage: build, script: x, artifacts: {name: mine, paths: [bin/], exclude: [bin/tmp], expire_in: 1 week, when: always, reports: {junit: a.xml, sast: s.json}}}
b: {stage: build, script: x, artifacts: {paths: [lib/]}}
plain: {stage: build, script: x}
all: {stage: test, script: x}
named: {stage: test, script: x, dependencies: [b]}
none: {stage: test, script: x, dependencies: []}
needing: {stage: test, script: x, needs: [a, {job: b, artifacts: false}]}
`

func newKeeper(t *testing.T) world {
	t.Helper()
	w := newWorldWith(t, keeping)
	w.keep()
	return w
}

// keep gives the world a store of artifacts.
func (w *world) keep() {
	w.t.Helper()
	t := w.t
	blobs, err := blob.Open(t.Context(), "mem://")
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = blobs.Close() })
	w.Artifacts = artifact.NewStore(w.Activity.Pipelines, blobs)
	w.serve()
}

// upload stores an artifact of a job.
func (w world) upload(j *runnerjobs.Job, query, content string) *httptest.ResponseRecorder {
	w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "artifacts.zip")
	w.Expect(err).NotTo(HaveOccurred())
	_, err = part.Write([]byte(content))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(form.Close()).To(Succeed())
	return w.send(j.Token, "POST", fmt.Sprintf("/jobs/%d/artifacts?%s", j.ID, query), body.String(), "Content-Type", form.FormDataContentType())
}

func TestRequest_saysWhichArtifactsAJobHas(t *testing.T) {
	w := newKeeper(t)
	w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	a, b, plain := w.ask(token), w.ask(token), w.ask(token)
	w.Expect(a.Artifacts).To(Equal([]runnerjobs.Artifact{
		{Name: "mine", Paths: []string{"bin/"}, Exclude: []string{"bin/tmp"}, When: "always", Type: "archive", Format: "zip"},
		{Name: "junit.xml", Paths: []string{"a.xml"}, Exclude: []string{}, When: "always", Type: "junit", Format: "gzip"},
		{Name: "gl-sast-report.json", Paths: []string{"s.json"}, Exclude: []string{}, When: "always", Type: "sast", Format: "raw"},
	}))
	w.Expect(plain.Artifacts).To(BeEmpty())
	w.Expect(w.upload(a, "artifact_type=archive&artifact_format=zip", "content of a").Code).To(Equal(201))
	w.Expect(w.upload(b, "artifact_type=archive&artifact_format=zip", "content of b").Code).To(Equal(201))
	for _, j := range []*runnerjobs.Job{a, b, plain} {
		w.Expect(w.end(j, "success", "").Code).To(Equal(200))
	}
	dependencies := map[string][]string{}
	var last *runnerjobs.Job
	for range 4 {
		last = w.ask(token)
		dependencies[last.Info.Name] = []string{}
		for _, d := range last.Dependencies {
			w.Expect(d).To(And(HaveField("Token", last.Token), HaveField("File.Filename", "artifacts.zip"), HaveField("File.Size", int64(12))))
			dependencies[last.Info.Name] = append(dependencies[last.Info.Name], d.Name)
		}
	}
	w.Expect(dependencies).To(Equal(map[string][]string{"all": {"a", "b"}, "named": {"b"}, "none": {}, "needing": {"a"}}))

	got := w.send(last.Token, "GET", fmt.Sprintf("/jobs/%d/artifacts?direct_download=true", a.ID), "")
	w.Expect(got.Code).To(Equal(200), got.Body.String())
	w.Expect(got.Body.String()).To(Equal("content of a"))
	w.Expect(w.send(last.Token, "GET", fmt.Sprintf("/jobs/%d/artifacts", plain.ID), "").Code).To(Equal(404))
	w.Expect(w.send(a.Token, "GET", fmt.Sprintf("/jobs/%d/artifacts", b.ID), "").Code).To(Equal(403), "the job has ended")
	w.Expect(w.send("unknown", "GET", fmt.Sprintf("/jobs/%d/artifacts", a.ID), "").Code).To(Equal(403))
	w.create()
	w.Expect(w.send(w.ask(token).Token, "GET", fmt.Sprintf("/jobs/%d/artifacts", a.ID), "").Code).To(Equal(404), "a job of another pipeline")
}

func TestDotenv_isForLaterJobs(t *testing.T) {
	w := newWorldWith(t, `
stages: [build, test]
variables: {VERSION: of the configuration, OTHER: "1"}
build: {stage: build, script: x, artifacts: {reports: {dotenv: build.env}}}
test: {stage: test, script: x}
none: {stage: test, script: x, dependencies: []}
`)
	w.keep()
	w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	build := w.ask(token)
	for content, reason := range map[string]string{
		"VERSION":                             "line 1 is not of the form",
		"\nA-B=1":                             "line 2 is not of the form",
		"A=" + strings.Repeat("x", 5<<10):     "larger than 5120 bytes",
		strings.Repeat("A=1\n", 3) + "B=\xff": "not a text in UTF-8",
	} {
		refused := w.upload(build, "artifact_type=dotenv&artifact_format=gzip", packed(content))
		w.Expect(refused.Code).To(Equal(400))
		w.Expect(refused.Body.String()).To(ContainSubstring(reason))
	}
	w.Expect(w.upload(build, "artifact_type=dotenv&artifact_format=gzip", "not packed").Code).To(Equal(400))
	w.Expect(w.upload(build, "artifact_type=dotenv&artifact_format=gzip", packed("VERSION=0\n\n VERSION = 1.2=$OTHER \nEMPTY=\n")).Code).To(Equal(201))
	w.Expect(w.end(build, "success", "").Code).To(Equal(200))
	versions := map[string]string{}
	for range 2 {
		j := w.ask(token)
		for _, v := range j.Variables {
			if v.Key == "VERSION" {
				versions[j.Info.Name] = v.Value
			}
		}
	}
	w.Expect(versions).To(Equal(map[string]string{"test": "1.2=$OTHER", "none": "of the configuration"}))
}

// packed packs a text with gzip.
func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func TestUpload_refusesWhatTheJobDoesNotHave(t *testing.T) {
	w := newKeeper(t)
	w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	a, _, plain := w.ask(token), w.ask(token), w.ask(token)
	w.Expect(w.upload(a, "artifact_type=archive&artifact_format=zip", "content").Code).To(Equal(201))
	for name, answer := range map[string]*httptest.ResponseRecorder{
		"201 twice":          w.upload(a, "artifact_type=archive&artifact_format=zip", "content"),
		"400 another one":    w.upload(a, "artifact_type=archive&artifact_format=zip", "CONTENT"),
		"400 another report": w.upload(a, "artifact_type=dotenv&artifact_format=gzip", "content"),
		"400 no artifacts":   w.upload(plain, "artifact_type=archive&artifact_format=zip", "content"),
		"400 no format":      w.upload(a, "artifact_type=junit&artifact_format=tar", "content"),
		"403 unknown token":  w.upload(&runnerjobs.Job{ID: a.ID, Token: "unknown"}, "artifact_type=junit&artifact_format=gzip", "content"),
		"403 another job":    w.upload(&runnerjobs.Job{ID: a.ID, Token: plain.Token}, "artifact_type=junit&artifact_format=gzip", "content"),
	} {
		code, _, _ := strings.Cut(name, " ")
		w.Expect(fmt.Sprint(answer.Code)).To(Equal(code), name+answer.Body.String())
	}
	w.Expect(w.end(a, "success", "").Code).To(Equal(200))
	w.Expect(w.upload(a, "artifact_type=junit&artifact_format=gzip", "content").Code).To(Equal(403), "the job has ended")
	stored, err := w.Activity.Pipelines.Artifacts(t.Context(), a.ID)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(stored[a.ID]).To(HaveExactElements(And(HaveField("Type", pipeline.Archive), HaveField("Expires", BeTemporally("==", w.Clock.Now().AddDate(0, 0, 7))))))
}

func TestArtifacts_areNotTransferredForBlockedUser(t *testing.T) {
	w := newKeeper(t)
	w.create()
	token := w.runner(runner.Runner{Type: runner.OfInstance, RunUntagged: true})
	a, b := w.ask(token), w.ask(token)
	const archive = "artifact_type=archive&artifact_format=zip"
	w.Expect(w.upload(a, archive, "content of a").Code).To(Equal(201))
	w.block("dora")
	w.Expect(w.upload(b, archive, "content of b").Code).To(Equal(403))
	w.Expect(w.send(b.Token, "GET", fmt.Sprintf("/jobs/%d/artifacts", a.ID), "").Code).To(Equal(403))
	w.Expect(w.end(a, "failed", "").Code).To(Equal(200))
}
