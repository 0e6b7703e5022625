package pipelines_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	_ "gocloud.dev/blob/memblob" // the driver of mem:// URLs
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/apiserver/v4/pipelines"
	"github.com/forgeplane/forgeplane/internal/artifact"
	"github.com/forgeplane/forgeplane/internal/blob"
	"github.com/forgeplane/forgeplane/internal/pipeline"
)

// newKeeper returns a world that keeps artifacts.
func newKeeper(t *testing.T) world {
	t.Helper()
	w := newWorld(t)
	blobs, err := blob.Open(t.Context(), "mem://")
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = blobs.Close() })
	w.Artifacts = artifact.NewStore(w.Activity.Pipelines, blobs)
	w.Authenticator.Executing(w.Activity.Runners, w.Activity.Pipelines)
	w.Serve(pipelines.New(w.Kit).Table())
	return w
}

// keep creates a pipeline of a branch whose job build keeps an archive with bin/app.html and notes.txt, and returns the id of the job.
func (w world) keep(branch, access string) int64 {
	w.t.Helper()
	p := w.create(fmt.Sprintf(`{"ref":%q}`, branch))
	id := w.named(p, "build")
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for name, text := range map[string]string{"bin/app.html": "<script>", "notes.txt": "of " + branch} {
		into, err := archive.Create(name)
		w.Expect(err).NotTo(HaveOccurred())
		_, err = into.Write([]byte(text))
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(archive.Close()).To(Succeed())
	a := pipeline.Artifact{
		JobID: id, Type: pipeline.Archive, Format: "zip", Name: "artifacts.zip", Access: access, Size: int64(b.Len()), Expires: w.Clock.Now().Add(time.Hour),
	}
	w.Expect(w.Artifacts.Add(w.t.Context(), &a, &b)).To(Succeed())
	w.run(p, "build", pipeline.Success)
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/jobs/%d/play", w.named(p, "deploy")), "").Code).To(Equal(200))
	w.run(p, "deploy", pipeline.Success)
	return id
}

func TestArtifacts_areSent(t *testing.T) {
	w := newKeeper(t)
	id := w.keep("topic", "all")
	ofJob := fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", id)

	whole := w.As("rita", ofJob, "")
	w.Expect(whole.Code).To(Equal(200), whole.Body)
	w.Expect(whole.Body).To(HavePrefix("PK"))
	w.Expect(whole.Header).To(And(HaveKeyWithValue("Content-Type", []string{"application/zip"}),
		HaveKeyWithValue("Content-Disposition", []string{`attachment; filename="artifacts.zip"; filename*=UTF-8''artifacts.zip`})))
	w.Expect(w.As("rita", "GET /projects/20/jobs/artifacts/topic/download?job=build", "").Body).To(Equal(whole.Body))
	page := w.As("rita", ofJob+"/bin/app.html", "")
	w.Expect(page.String()).To(Equal("200 <script>"))
	w.Expect(page.Header).To(And(HaveKeyWithValue("Content-Type", []string{"text/html; charset=utf-8"}),
		HaveKeyWithValue("Content-Disposition", []string{`attachment; filename="app.html"; filename*=UTF-8''app.html`})))
	raw := w.As("rita", "GET /projects/20/jobs/artifacts/topic/raw/bin%2Fapp.html?job=build", "")
	w.Expect(raw.String()).To(Equal("200 <script>"))
	w.Expect(raw.Header).To(HaveKeyWithValue("Content-Type", []string{"text/plain; charset=utf-8"}))

	for request, answer := range map[string]string{
		ofJob + "/missing":        "404",
		ofJob + "/..%2Fnotes.txt": "404",
		ofJob + "/a%00b":          `400 {"message":"400 Bad request"}`,
		ofJob + "/%ff":            `400 {"message":"400 Bad request"}`,
		"GET /projects/20/jobs/artifacts/topic/download":              `400 {"error":"job is missing"`,
		"GET /projects/20/jobs/artifacts/topic/download?job=deploy":   `404 {"message":"404 Not found"}`,
		"GET /projects/20/jobs/artifacts/HEAD/download?job=build":     `404 {"message":"404 Not found"}`,
		"GET /projects/20/jobs/artifacts/main/raw/notes?job=build":    "404",
		"GET /projects/20/jobs/9999/artifacts":                        `404 {"message":"404 Not found"}`,
		"GET /projects/20/jobs/artifacts/topic/raw/missing?job=build": "404",
	} {
		w.Expect(w.As("rita", request, "").String()).To(HavePrefix(answer), request)
	}
	shown := familytest.Decode[pipelines.Job](t, w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d", id), ""))
	w.Expect(shown.Artifacts).To(Equal([]pipelines.Artifact{{FileType: "archive", Size: int64(len(whole.Body)), Filename: "artifacts.zip", FileFormat: "zip"}}))
	w.Expect(shown.ArtifactsFile).To(Equal(&pipelines.ArtifactFile{Filename: "artifacts.zip", Size: int64(len(whole.Body))}))
	w.Expect(shown.DownloadURL).To(HaveValue(Equal(familytest.WebURL + "/api/v4" + strings.TrimPrefix(ofJob, "GET "))))
}

func TestJob_withoutArtifactsHasTheFieldsOfTheDocument(t *testing.T) {
	w := newKeeper(t)
	p := w.create(`{"ref":"topic"}`)
	shown := familytest.Decode[map[string]any](t, w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d", w.named(p, "build")), ""))
	for _, field := range []string{"coverage", "download_url", "runner", "started_at", "finished_at", "duration", "failure_reason"} {
		w.Expect(shown).To(HaveKeyWithValue(field, BeNil()))
	}
	for _, field := range []string{"commit", "allow_failure", "id", "name", "ref", "artifacts", "stage", "created_at", "status", "tag", "web_url", "user"} {
		w.Expect(shown).To(HaveKeyWithValue(field, Not(BeNil())))
	}
}

func TestArtifacts_areForThoseWhoMayReadThem(t *testing.T) {
	w := newKeeper(t)
	for access, refused := range map[string][]string{
		"all": {}, "developer": {"otto", "rita"}, "maintainer": {"otto", "rita", "dora"}, "none": {"otto", "rita", "dora", "mary"},
	} {
		id := w.keep("topic", access)
		for _, name := range []string{"otto", "rita", "dora", "mary"} {
			want := "200"
			for _, one := range refused {
				if one == name {
					want = "403"
				}
			}
			w.Expect(w.As(name, fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", id), "").String()).To(HavePrefix(want), access+" "+name)
			w.Expect(w.As(name, fmt.Sprintf("GET /projects/20/jobs/%d/artifacts/notes.txt", id), "").String()).To(HavePrefix(want), access+" "+name)
		}
	}
	id := w.keep("topic", "all")
	w.Expect(w.As("", fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", id), "").Code).To(Equal(404), "the project is private")
}

func TestArtifacts_ofPrivatePipelines(t *testing.T) {
	w := newKeeper(t)
	id := w.keep("topic", "all")
	web := w.project()
	web.Spec.Visibility, web.Spec.Pipelines.Public = v1alpha1.VisibilityPublic, ptr.To(false)
	w.Expect(w.Client.Update(t.Context(), web)).To(Succeed())
	var acme v1alpha1.Group
	w.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: "acme", Name: "acme"}, &acme)).To(Succeed())
	acme.Spec.Visibility = v1alpha1.VisibilityPublic
	w.Expect(w.Client.Update(t.Context(), &acme)).To(Succeed())
	for name, want := range map[string]int{"": 403, "otto": 403, "rita": 200} {
		for _, request := range []string{fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", id), fmt.Sprintf("GET /projects/20/jobs/%d", id), "GET /projects/20/pipelines"} {
			w.Expect(w.As(name, request, "").Code).To(Equal(want), name+" "+request)
		}
	}
}

func TestArtifacts_areReadWithAJobToken(t *testing.T) {
	w := newKeeper(t)
	id := w.keep("topic", "all")
	p := w.create(`{"ref":"topic"}`)
	j, err := w.Activity.Pipelines.GetJob(t.Context(), w.project().UID, w.named(p, "build"))
	w.Expect(err).NotTo(HaveOccurred())
	token := pipeline.NewToken()
	j, err = w.Activity.Pipelines.Take(t.Context(), j, 1, token)
	w.Expect(err).NotTo(HaveOccurred())
	request := fmt.Sprintf("GET /projects/20/jobs/%d/artifacts/notes.txt?job_token=", id)
	w.Expect(w.As("", request+token, "").String()).To(Equal("200 of topic"))
	w.Header = map[string][]string{"Job-Token": {token}}
	w.Expect(w.As("", "GET /projects/20/jobs/artifacts/topic/raw/notes.txt?job=build", "").String()).To(Equal("200 of topic"))
	w.Expect(w.As("", fmt.Sprintf("POST /projects/20/jobs/%d/artifacts/keep", id), "").Code).To(Equal(401), "it only reads")
	w.Header = nil
	w.Expect(w.As("", request+"glcbt-unknown", "").Code).To(Equal(401))
	_, err = w.Activity.Pipelines.Succeed(t.Context(), j)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.As("", request+token, "").Code).To(Equal(401), "the job has ended")
}

func TestArtifacts_expireAndAreKept(t *testing.T) {
	w := newKeeper(t)
	first, second := w.keep("topic", "all"), w.keep("topic", "all")
	read := func(id int64) int {
		return w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", id), "").Code
	}
	w.Expect(w.As("rita", fmt.Sprintf("POST /projects/20/jobs/%d/artifacts/keep", second), "").Code).To(Equal(403))
	w.Expect(w.As("mary", "DELETE /projects/20/artifacts", "").String()).To(Equal(`202 {"message":"202 Accepted"}`))
	w.Expect([]int{read(first), read(second)}).To(Equal([]int{404, 200}), "that of the latest successful pipeline stays")
	w.Expect(w.As("rita", fmt.Sprintf("GET /projects/20/jobs/%d/artifacts", first), "").String()).To(Equal(`404 {"message":"404 Not Found"}`))
	w.Clock.SetTime(w.Clock.Now().Add(2 * time.Hour))
	w.Expect(read(second)).To(Equal(200))
	w.Expect(w.As("dora", fmt.Sprintf("POST /projects/20/jobs/%d/artifacts/keep", first), "").Code).To(Equal(404), "it is too late")
	kept := w.As("dora", fmt.Sprintf("POST /projects/20/jobs/%d/artifacts/keep", second), "")
	w.Expect(kept.String()).To(And(HavePrefix("200"), ContainSubstring(`"artifacts_expire_at":null`)))
	web := w.project()
	web.Spec.Pipelines.KeepLatestArtifacts = ptr.To(false)
	w.Expect(w.Client.Update(t.Context(), web)).To(Succeed())
	w.Expect(read(second)).To(Equal(200), "it does not expire")
	w.Expect(w.As("mary", "DELETE /projects/20/artifacts", "").Code).To(Equal(202))
	w.Expect(read(second)).To(Equal(404))
	w.Expect(w.As("dora", "DELETE /projects/20/artifacts", "").Code).To(Equal(403))
}

func TestArtifacts_areDeletedWithoutTheLog(t *testing.T) {
	w := newKeeper(t)
	id := w.keep("topic", "all")
	_, err := w.Activity.Pipelines.AppendLog(t.Context(), id, 0, []byte("log"))
	w.Expect(err).NotTo(HaveOccurred())
	path := fmt.Sprintf("/projects/20/jobs/%d", id)
	w.Expect(w.As("dora", "DELETE "+path+"/artifacts", "").Code).To(Equal(403))
	w.Expect(w.As("", "DELETE "+path+"/artifacts", "").Code).To(Equal(401))
	w.Expect(w.As("mary", "DELETE "+path+"/artifacts", "").Code).To(Equal(204))
	w.Expect(w.As("rita", "GET "+path+"/artifacts", "").Code).To(Equal(404))
	w.Expect(w.As("dora", "POST "+path+"/artifacts/keep", "").Code).To(Equal(404))
	w.Expect(w.As("rita", "GET "+path+"/trace", "").String()).To(Equal("200 log"))
	w.Expect(strings.Contains(w.As("rita", "GET "+path, "").Body, `"artifacts":[]`)).To(BeTrue())
}
