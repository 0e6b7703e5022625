package registryhttp_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/client-go/util/retry"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
)

const manifestList = "application/vnd.docker.distribution.manifest.list.v2+json"

// record returns the record of a repository.
func (w *world) record(t *testing.T, name string) record.Repository {
	t.Helper()
	means, err := w.registry.Names.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.records.Find(t.Context(), means.Project.UID, means.Image)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManifest_mustMeanOneThing(t *testing.T) {
	r := newRepository(t, "acme/app")
	config := r.blob("{}")
	own := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2}`, config.Digest)
	many := strings.Repeat(own+",", 2000) + own
	long := strings.Repeat("a", 65<<10)
	subject := fmt.Sprintf(`"subject":{"mediaType":"x","digest":%q,"size":1}`, config.Digest)
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"a key twice":                    {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"manifests":"x","manifests":null}`, `key \"manifests\" twice`},
		"a key twice in another case":    {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"Manifests":null,"manifests":null}`, `key \"manifests\" twice`},
		"a key twice further in":         {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"size":2,"size":1}]}`, `key \"size\" twice`},
		"a list with a configuration":    {manifestList, `{"schemaVersion":2,"mediaType":"` + manifestList + `","manifests":[],"config":{"size":1}}`, "must not have the fields config and layers"},
		"an index without manifests":     {v1.MediaTypeImageIndex, `{"schemaVersion":2}`, "must have the field manifests"},
		"too many layers":                {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[` + many + `]}`, "2000 are the limit"},
		"a digest of another kind":       {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"sha384:` + strings.Repeat("a", 96) + `"}]}`, "must be one of SHA-256 or SHA-512"},
		"a URL of another kind":          {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"` + config.Digest.String() + `","size":2,"urls":["file:///etc/passwd"]}]}`, "must be one of http or https"},
		"a negative size":                {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[{"digest":"` + config.Digest.String() + `","size":-1}]}`, "must not be negative"},
		"a subject and long annotations": {v1.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + own + `,"layers":[],"annotations":{"a":"` + long + `"},` + subject + `}`, "must not be longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := r.must(http.StatusBadRequest, http.MethodPut, "/manifests/1", c.mediaType, c.body)
			NewWithT(t).Expect(body).To(And(ContainSubstring("MANIFEST_INVALID"), ContainSubstring(c.want)))
		})
	}
}

func TestManifest_leavesNothingIfRefused(t *testing.T) {
	r := newRepository(t, "acme/app")
	missing, subject := digest.FromString("missing"), digest.FromString("subject")
	body := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"x","digest":%q,"size":7},"layers":[],"subject":{"mediaType":"x","digest":%q,"size":1}}`, missing, subject)
	r.must(http.StatusBadRequest, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, body)
	r.g.Expect(r.records.ReferrersAfter(t.Context(), r.record(t, "acme/app").ID, "", 10)).To(BeEmpty())
}

func TestBlob_hasDigestOfSHA256OrSHA512(t *testing.T) {
	r := newRepository(t, "acme/app")
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	d := digest.SHA384.FromString("content")
	_, body := r.must(http.StatusBadRequest, http.MethodPut, with(started.Get("Location"), "digest="+d.String()), binary, "content")
	r.g.Expect(body).To(And(ContainSubstring("DIGEST_INVALID"), ContainSubstring("must be one of SHA-256 or SHA-512")))
}

func TestRequest_mustNotBeAForm(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", "f")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = file.Write(make([]byte, 40<<20))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parts.Close()).To(Succeed())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.host+"/v2/acme/open/blobs/uploads/", &form)
	g.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Content-Type", parts.FormDataContentType())
	// The server need not read the body before it answers.
	if answer, err := http.DefaultClient.Do(r); err == nil {
		g.Expect(answer).To(HaveHTTPStatus(http.StatusUnsupportedMediaType))
		g.Expect(answer.Body.Close()).To(Succeed())
	}
	g.Expect(filepath.Glob(filepath.Join(temporary, "multipart*"))).To(BeEmpty())

	// curl sends this type with --data-binary.
	bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull,push")
	_, started, _ := w.do(t, bearer, http.MethodPost, "/v2/acme/app/blobs/uploads/", nil, nil)
	target := with(started.Get("Location"), "digest="+digest.FromString("hello").String())
	status, _, body := w.do(t, bearer, http.MethodPut, target, strings.NewReader("hello"), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	g.Expect(status).To(Equal(http.StatusCreated), body)
	g.Expect(os.ReadDir(temporary)).To(BeEmpty())
}

func TestRegistry_servesClientThatAcceptsEverything(t *testing.T) {
	r := newRepository(t, "acme/app")
	config := r.blob("{}")
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"x","digest":%q,"size":2},"layers":[]}`, config.Digest))
	r.must(http.StatusOK, http.MethodGet, "/manifests/1", "", "", "Accept", "*/*")
	r.must(http.StatusOK, http.MethodGet, "/manifests/1", "", "")
	r.must(http.StatusNotFound, http.MethodGet, "/manifests/1", "", "", "Accept", manifestList)
}

func TestToken_createsNoRepositoryThatClientsCannotName(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	for _, name := range []string{"acme/app/../x", "acme/app/<script>", "acme/app/Ünï", "acme/app/" + strings.Repeat("a", 300), "acme/app/a:b", "acme/app//x", "acme/app/\x00"} {
		_, claims := w.bearer(t, "dan", "repository:"+name+":pull,push")
		g.Expect(claims.Access).To(BeEmpty(), name)
	}
	g.Expect(w.records.After(t.Context(), 0, 10)).To(BeEmpty())
}

func TestRegistry_saysWhyRepositoryTakesNoChanges(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	pushed := w.push(t, "acme/app:1")
	d, err := pushed.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	bearer, _ := w.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	refused := func(message string) {
		t.Helper()
		for _, request := range []string{"POST /blobs/uploads/", "DELETE /manifests/1", "DELETE /manifests/" + d.String(), "DELETE /tags/reference/1", "DELETE /blobs/" + d.String()} {
			method, path, _ := strings.Cut(request, " ")
			status, _, body := w.do(t, bearer, method, "/v2/acme/app"+path, nil, nil)
			g.Expect(status).To(Equal(http.StatusForbidden), "%s: %s", request, body)
			g.Expect(body).To(And(ContainSubstring("DENIED"), ContainSubstring(message)), request)
		}
	}
	g.Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p := &v1alpha1.Project{}
		if err := w.Client.Get(t.Context(), clientKey("acme", "app"), p); err != nil {
			return err
		}
		p.Spec.Archived = true
		return w.Client.Update(t.Context(), p)
	})).To(Succeed())
	refused("the project is archived")
	g.Expect(w.records.Removing(t.Context(), w.record(t, "acme/app").ID, record.DeleteScheduled)).To(Succeed())
	refused("is being deleted")
}

func TestRegistry_refusesUserWhoWasBlockedOrDeleted(t *testing.T) {
	for name, change := range map[string]func(w *world, u *v1alpha1.User) error{
		"blocked": func(w *world, u *v1alpha1.User) error {
			u.Spec.State = v1alpha1.UserBlocked
			return w.Client.Update(t.Context(), u)
		},
		"deleted": func(w *world, u *v1alpha1.User) error { return w.Client.Delete(t.Context(), u) },
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t)
			w.push(t, "acme/app:1")
			bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull,push")
			status, _, body := w.do(t, bearer, http.MethodGet, "/v2/acme/app/tags/list", nil, nil)
			g.Expect(status).To(Equal(http.StatusOK), body)
			u := &v1alpha1.User{}
			g.Expect(w.Client.Get(t.Context(), clientKey("", "dan"), u)).To(Succeed())
			g.Expect(change(w, u)).To(Succeed())
			status, _, body = w.do(t, bearer, http.MethodGet, "/v2/acme/app/tags/list", nil, nil)
			g.Expect(status).To(Equal(http.StatusUnauthorized), body)
		})
	}
}

func TestDetail_dependsOnOwnRepositoryAlone(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/open:1")
	source, err := w.images(t, "acme/open").Detail(t.Context(), "1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source.Size).NotTo(BeNil())
	r := &repository{world: w, t: t, g: g}
	r.bearer, _ = w.bearer(t, "mary", "repository:acme/app:pull,push,delete", "repository:acme/open:pull,push,delete")
	body := `{"created":"2026-05-04T12:00:00Z"}`
	image := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[]}`, digest.FromString(body), len(body))
	for _, base := range []string{"/v2/acme/app", "/v2/acme/open"} {
		r.base = base
		r.blob(body)
		r.must(http.StatusCreated, http.MethodPut, "/manifests/same", v1.MediaTypeImageManifest, image)
	}
	r.must(http.StatusAccepted, http.MethodDelete, "/v2/acme/app/blobs/"+digest.FromString(body).String(), "", "")
	partial, err := w.images(t, "acme/app").Detail(t.Context(), "same")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial.Created).To(BeNil())
	whole, err := w.images(t, "acme/open").Detail(t.Context(), "same")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(whole.Created).To(HaveValue(BeTemporally("==", time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))))
}

// images returns the images of a repository.
func (w *world) images(t *testing.T, name string) *registry.Images {
	t.Helper()
	images, err := w.registry.Images(t.Context(), w.record(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return images
}
