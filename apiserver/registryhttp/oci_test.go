package registryhttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
)

// repository is a client of one repository that follows the OCI distribution specification 1.1 to the letter.
type repository struct {
	*world
	t      *testing.T
	g      *WithT
	bearer string
	base   string
}

func newRepository(t *testing.T, name string) *repository {
	t.Helper()
	return newWorld(t).client(t, name)
}

// client returns a client of a repository.
func (w *world) client(t *testing.T, name string) *repository {
	t.Helper()
	bearer, _ := w.bearer(t, "mary", "repository:"+name+":pull,push,delete")
	return &repository{world: w, t: t, g: NewWithT(t), bearer: bearer, base: "/v2/" + name}
}

// must sends a request, and fails the test unless the status is the expected one. Paths without a host are below the repository.
func (r *repository) must(status int, method, path, contentType, body string, header ...string) (http.Header, string) {
	r.t.Helper()
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/v2/") {
		path = r.base + path
	}
	sent := http.Header{}
	if contentType != "" {
		sent.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		sent.Set(header[i], header[i+1])
	}
	got, answer, text := r.do(r.t, r.bearer, method, path, bytes.NewBufferString(body), sent)
	r.g.Expect(got).To(Equal(status), "%s %s: %s", method, path, text)
	return answer, text
}

const binary = "application/octet-stream"

// blob pushes a blob with a POST and a PUT.
func (r *repository) blob(content string) v1.Descriptor {
	r.t.Helper()
	d := digest.FromString(content)
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	r.must(http.StatusCreated, http.MethodPut, with(started.Get("Location"), "digest="+d.String()), binary, content)
	return v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: d, Size: int64(len(content))}
}

// with adds a query to a URL, which may have one.
func with(location, query string) string {
	if strings.Contains(location, "?") {
		return location + "&" + query
	}
	return location + "?" + query
}

// manifest returns a manifest with new blobs, and its digest.
func (r *repository) manifest(change func(m *v1.Manifest)) (text string, d digest.Digest) {
	r.t.Helper()
	config := r.blob("{}")
	config.MediaType = v1.MediaTypeImageConfig
	m := v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{r.blob("layer")}}
	m.SchemaVersion = 2
	if change != nil {
		change(&m)
	}
	content, err := json.Marshal(m)
	r.g.Expect(err).NotTo(HaveOccurred())
	return string(content), digest.FromBytes(content)
}

func accept(mediaType string) []string { return []string{"Accept", mediaType} }

func TestOCI_determinesSupport(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	header, _ := r.must(http.StatusOK, http.MethodGet, "/v2/", "", "")
	r.g.Expect(header.Get("Docker-Distribution-Api-Version")).To(Equal("registry/2.0"))
	status, header, body := r.do(t, "", http.MethodGet, "/v2/", nil, nil)
	r.g.Expect(status).To(Equal(http.StatusUnauthorized))
	r.g.Expect(header.Get("Www-Authenticate")).To(Equal(fmt.Sprintf(`Bearer realm="http://%s/jwt/auth",service="container_registry"`, r.host)))
	r.g.Expect(body).To(ContainSubstring(`"UNAUTHORIZED"`))
}

func TestOCI_pull(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1.0", v1.MediaTypeImageManifest, text)
	for _, reference := range []string{"1.0", d.String()} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			header, body := r.must(http.StatusOK, method, "/manifests/"+reference, "", "", accept(v1.MediaTypeImageManifest)...)
			r.g.Expect(header.Get("Docker-Content-Digest")).To(Equal(d.String()))
			r.g.Expect(header.Get("Content-Type")).To(Equal(v1.MediaTypeImageManifest))
			if method == http.MethodGet {
				r.g.Expect(body).To(Equal(text))
			}
		}
	}
	layer := digest.FromString("layer")
	header, body := r.must(http.StatusOK, http.MethodGet, "/blobs/"+layer.String(), "", "")
	r.g.Expect(body).To(Equal("layer"))
	r.g.Expect(header.Get("Docker-Content-Digest")).To(Equal(layer.String()))
	header, _ = r.must(http.StatusOK, http.MethodHead, "/blobs/"+layer.String(), "", "")
	r.g.Expect(header.Get("Content-Length")).To(Equal("5"))
	_, body = r.must(http.StatusPartialContent, http.MethodGet, "/blobs/"+layer.String(), "", "", "Range", "bytes=1-2")
	r.g.Expect(body).To(Equal("ay"))

	unknown := digest.FromString("unknown").String()
	for path, code := range map[string]string{"/manifests/none": "MANIFEST_UNKNOWN", "/manifests/" + unknown: "MANIFEST_UNKNOWN", "/blobs/" + unknown: "BLOB_UNKNOWN"} {
		_, body := r.must(http.StatusNotFound, http.MethodGet, path, "", "", accept(v1.MediaTypeImageManifest)...)
		r.g.Expect(body).To(ContainSubstring(code))
		r.must(http.StatusNotFound, http.MethodHead, path, "", "", accept(v1.MediaTypeImageManifest)...)
	}
}

func TestOCI_pushMonolithically(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	// POST and PUT.
	d := r.blob("two steps").Digest
	r.must(http.StatusOK, http.MethodHead, "/blobs/"+d.String(), "", "")
	// A single POST may be answered with 202, and the client goes on as with POST and PUT.
	content := "one step"
	d = digest.FromString(content)
	header, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/?digest="+d.String(), binary, content)
	r.must(http.StatusCreated, http.MethodPut, with(header.Get("Location"), "digest="+d.String()), binary, content)
	r.must(http.StatusOK, http.MethodHead, "/blobs/"+d.String(), "", "")
	// The wrong digest.
	header, _ = r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	_, body := r.must(http.StatusBadRequest, http.MethodPut, with(header.Get("Location"), "digest="+d.String()), binary, "other")
	r.g.Expect(body).To(ContainSubstring("DIGEST_INVALID"))
}

func TestOCI_pushInChunks(t *testing.T) { newRepository(t, "acme/app/oci").pushInChunks() }

// pushInChunks expects that uploads can be resumed and cancelled.
func (r *repository) pushInChunks() {
	r.t.Helper()
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "", "Content-Length", "0")
	first, _ := r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, "first ", "Content-Range", "0-5", "Content-Length", "6")
	r.g.Expect(first.Get("Range")).To(Equal("0-5"))
	// A chunk out of order.
	r.must(http.StatusRequestedRangeNotSatisfiable, http.MethodPatch, first.Get("Location"), binary, "second", "Content-Range", "9-14", "Content-Length", "6")
	// The state of the upload, with which an interrupted client goes on.
	state, _ := r.must(http.StatusNoContent, http.MethodGet, first.Get("Location"), "", "")
	r.g.Expect(state.Get("Range")).To(Equal("0-5"))
	second, _ := r.must(http.StatusAccepted, http.MethodPatch, state.Get("Location"), binary, "second", "Content-Range", "6-11", "Content-Length", "6")
	d := digest.FromString("first second")
	done, _ := r.must(http.StatusCreated, http.MethodPut, with(second.Get("Location"), "digest="+d.String()), "", "")
	r.g.Expect(done.Get("Location")).To(HaveSuffix(r.base + "/blobs/" + d.String()))
	_, body := r.must(http.StatusOK, http.MethodGet, done.Get("Location"), "", "")
	r.g.Expect(body).To(Equal("first second"))
	// An upload that is cancelled.
	started, _ = r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	r.must(http.StatusNoContent, http.MethodDelete, started.Get("Location"), "", "")
	r.must(http.StatusNotFound, http.MethodPatch, started.Get("Location"), binary, "late")
}

func TestOCI_signsStateOfUploads(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	location := started.Get("Location")
	forged := strings.Replace(location, "_state=", "_state=A", 1)
	r.g.Expect(forged).NotTo(Equal(location))
	_, body := r.must(http.StatusNotFound, http.MethodPatch, forged, binary, "forged")
	r.g.Expect(body).To(ContainSubstring("BLOB_UPLOAD_INVALID"))
	other, _ := r.world.bearer(t, "mary", "repository:acme/open/oci:pull,push")
	status, _, body := r.do(t, other, http.MethodPatch, strings.Replace(location, "/acme/app/oci/", "/acme/open/oci/", 1), strings.NewReader("foreign"), nil)
	r.g.Expect(status).To(BeElementOf(http.StatusBadRequest, http.StatusNotFound), body)
}

func TestOCI_pushManifests(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	header, _ := r.must(http.StatusCreated, http.MethodPut, "/manifests/"+d.String(), v1.MediaTypeImageManifest, text)
	r.g.Expect(header.Get("Location")).To(HaveSuffix(r.base + "/manifests/" + d.String()))
	r.must(http.StatusNotFound, http.MethodHead, "/manifests/1.0", "", "", accept(v1.MediaTypeImageManifest)...)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1.0", v1.MediaTypeImageManifest, text)

	_, body := r.must(http.StatusBadRequest, http.MethodPut, "/manifests/1.0", v1.MediaTypeImageManifest, "{")
	r.g.Expect(body).To(ContainSubstring("MANIFEST_INVALID"))
	missing, _ := r.manifest(func(m *v1.Manifest) {
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: digest.FromString("missing"), Size: 7})
	})
	_, body = r.must(http.StatusBadRequest, http.MethodPut, "/manifests/2.0", v1.MediaTypeImageManifest, missing)
	r.g.Expect(body).To(ContainSubstring("MANIFEST_BLOB_UNKNOWN"))
	_, body = r.must(http.StatusBadRequest, http.MethodPut, "/manifests/"+digest.FromString("other").String(), v1.MediaTypeImageManifest, text)
	r.g.Expect(body).To(ContainSubstring("DIGEST_INVALID"))

	index := v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: int64(len(text))}}}
	index.SchemaVersion = 2
	content, err := json.Marshal(index)
	r.g.Expect(err).NotTo(HaveOccurred())
	r.must(http.StatusCreated, http.MethodPut, "/manifests/multi", v1.MediaTypeImageIndex, string(content))
	_, body = r.must(http.StatusOK, http.MethodGet, "/manifests/multi", "", "", accept(v1.MediaTypeImageIndex)...)
	r.g.Expect(body).To(Equal(string(content)))
}

func TestOCI_listTags(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	_, body := r.must(http.StatusOK, http.MethodGet, "/tags/list", "", "")
	r.g.Expect(body).To(MatchJSON(`{"name":"acme/app/oci","tags":[]}`))
	text, _ := r.manifest(nil)
	for _, tag := range []string{"c", "a", "d", "b"} {
		r.must(http.StatusCreated, http.MethodPut, "/manifests/"+tag, v1.MediaTypeImageManifest, text)
	}
	for query, want := range map[string]string{
		"": `["a","b","c","d"]`, "?n=2": `["a","b"]`, "?n=2&last=b": `["c","d"]`, "?last=a": `["b","c","d"]`, "?n=0": `[]`, "?last=bb": `["c","d"]`,
	} {
		_, body := r.must(http.StatusOK, http.MethodGet, "/tags/list"+query, "", "")
		r.g.Expect(body).To(MatchJSON(`{"name":"acme/app/oci","tags":`+want+`}`), query)
	}
	header, _ := r.must(http.StatusOK, http.MethodGet, "/tags/list?n=2", "", "")
	r.g.Expect(header.Get("Link")).To(Equal(`</v2/acme/app/oci/tags/list?last=b&n=2>; rel="next"`))
	header, _ = r.must(http.StatusOK, http.MethodGet, "/tags/list?n=2&last=b", "", "")
	r.g.Expect(header.Get("Link")).To(BeEmpty())
}

func TestOCI_recordsReferrerBeforeAndAfterItIsStored(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	signature, signed := r.manifest(func(m *v1.Manifest) {
		m.Subject = &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: int64(len(text))}
	})
	var recorded []string
	r.storage.Before(func(ctx context.Context, operation, path string) (err error) {
		if recorded == nil && operation == "PutContent" && strings.Contains(path, "/_manifests/revisions/") {
			id := r.record(t, "acme/app/oci").ID
			if recorded, err = r.records.ReferrersAfter(ctx, id, "", 2); err == nil {
				err = r.records.Unrefer(ctx, id, signed.String()) // as a deletion at the same time does
			}
		}
		return err
	})
	r.must(http.StatusCreated, http.MethodPut, "/manifests/"+signed.String(), v1.MediaTypeImageManifest, signature)
	r.g.Expect(recorded).To(Equal([]string{signed.String()}))
	_, list := r.must(http.StatusOK, http.MethodGet, "/referrers/"+d.String(), "", "")
	r.g.Expect(list).To(ContainSubstring(signed.String()))
}

func TestOCI_listReferrers(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	subject := &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: int64(len(text))}
	referrers := func(query string) (http.Header, v1.Index) {
		header, body := r.must(http.StatusOK, http.MethodGet, "/referrers/"+d.String()+query, "", "")
		r.g.Expect(header.Get("Content-Type")).To(Equal(v1.MediaTypeImageIndex))
		var index v1.Index
		r.g.Expect(json.Unmarshal([]byte(body), &index)).To(Succeed())
		r.g.Expect(index.SchemaVersion).To(Equal(2))
		return header, index
	}
	_, none := referrers("")
	r.g.Expect(none.Manifests).To(BeEmpty())
	put := func(change func(m *v1.Manifest)) (string, digest.Digest) {
		text, d := r.manifest(change)
		header, _ := r.must(http.StatusCreated, http.MethodPut, "/manifests/"+d.String(), v1.MediaTypeImageManifest, text)
		r.g.Expect(header.Get("OCI-Subject")).To(Equal(subject.Digest.String()))
		return text, d
	}
	// The subject may be pushed later.
	signature, signed := put(func(m *v1.Manifest) {
		m.Subject, m.ArtifactType, m.Annotations = subject, "application/vnd.example.signature", map[string]string{"by": "mary"}
	})
	_, billed := put(func(m *v1.Manifest) { m.Subject, m.Config.MediaType = subject, "application/vnd.example.sbom" })
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1.0", v1.MediaTypeImageManifest, text)

	_, all := referrers("")
	r.g.Expect(all.Manifests).To(ConsistOf(
		v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: signed, Size: int64(len(signature)), ArtifactType: "application/vnd.example.signature", Annotations: map[string]string{"by": "mary"}},
		HaveField("ArtifactType", "application/vnd.example.sbom"),
	))
	header, some := referrers("?artifactType=application/vnd.example.sbom")
	r.g.Expect(header.Get("OCI-Filters-Applied")).To(Equal("artifactType"))
	r.g.Expect(some.Manifests).To(ConsistOf(HaveField("Digest", billed)))
	r.must(http.StatusAccepted, http.MethodDelete, "/manifests/"+signed.String(), "", "")
	_, left := referrers("")
	r.g.Expect(left.Manifests).To(ConsistOf(HaveField("Digest", billed)))
	r.must(http.StatusBadRequest, http.MethodGet, "/referrers/nonsense", "", "")
	status, _, _ := r.do(t, "", http.MethodGet, r.base+"/referrers/"+d.String(), nil, nil)
	r.g.Expect(status).To(Equal(http.StatusUnauthorized))
}

func TestOCI_listReferrersByPages(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	subject := &v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: d, Size: int64(len(text))}
	var pushed, listed []digest.Digest
	for n := range 60 { // 60 KiB each, and a page has at most 3 MiB
		text, d := r.manifest(func(m *v1.Manifest) {
			m.Subject, m.ArtifactType, m.Annotations = subject, "application/vnd.example.signature", map[string]string{"of": strconv.Itoa(n) + strings.Repeat("-", 60<<10)}
		})
		r.must(http.StatusCreated, http.MethodPut, "/manifests/"+d.String(), v1.MediaTypeImageManifest, text)
		pushed = append(pushed, d)
	}
	next, pages := r.base+"/referrers/"+d.String()+"?artifactType=application/vnd.example.signature", 0
	for ; next != ""; pages++ {
		header, body := r.must(http.StatusOK, http.MethodGet, next, "", "")
		var index v1.Index
		r.g.Expect(json.Unmarshal([]byte(body), &index)).To(Succeed())
		for _, m := range index.Manifests {
			listed = append(listed, m.Digest)
		}
		next, _, _ = strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	}
	r.g.Expect(listed).To(ConsistOf(pushed))
	r.g.Expect(pages).To(Equal(2))
}

func TestOCI_delete(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	for _, tag := range []string{"a", "b", "c"} {
		r.must(http.StatusCreated, http.MethodPut, "/manifests/"+tag, v1.MediaTypeImageManifest, text)
	}
	r.must(http.StatusAccepted, http.MethodDelete, "/manifests/a", "", "", accept("application/vnd.docker.distribution.manifest.v2+json")...)
	r.must(http.StatusNotFound, http.MethodDelete, "/manifests/a", "", "")
	r.must(http.StatusAccepted, http.MethodDelete, "/tags/reference/b", "", "")
	r.must(http.StatusNotFound, http.MethodDelete, "/tags/reference/b", "", "")
	r.must(http.StatusMethodNotAllowed, http.MethodGet, "/tags/reference/c", "", "")
	r.must(http.StatusNotFound, http.MethodDelete, "/tags/reference/"+d.String(), "", "")
	_, body := r.must(http.StatusOK, http.MethodGet, "/tags/list", "", "")
	r.g.Expect(body).To(MatchJSON(`{"name":"acme/app/oci","tags":["c"]}`))
	r.must(http.StatusAccepted, http.MethodDelete, "/manifests/"+d.String(), "", "")
	for _, reference := range []string{d.String(), "c"} {
		r.must(http.StatusNotFound, http.MethodGet, "/manifests/"+reference, "", "", accept(v1.MediaTypeImageManifest)...)
	}
	_, body = r.must(http.StatusOK, http.MethodGet, "/tags/list", "", "")
	r.g.Expect(body).To(MatchJSON(`{"name":"acme/app/oci","tags":[]}`))

	// A blob goes from its repository, and stays in others.
	layer := digest.FromString("layer").String()
	both, _ := r.world.bearer(t, "mary", "repository:acme/app/oci:pull", "repository:acme/open/oci:pull,push")
	status, _, body := r.do(t, both, http.MethodPost, "/v2/acme/open/oci/blobs/uploads/?mount="+layer+"&from=acme/app/oci", nil, nil)
	r.g.Expect(status).To(Equal(http.StatusCreated), body)
	r.must(http.StatusAccepted, http.MethodDelete, "/blobs/"+layer, "", "")
	r.must(http.StatusNotFound, http.MethodHead, "/blobs/"+layer, "", "")
	r.must(http.StatusNotFound, http.MethodDelete, "/blobs/"+layer, "", "")
	status, _, _ = r.do(t, both, http.MethodHead, "/v2/acme/open/oci/blobs/"+layer, nil, nil)
	r.g.Expect(status).To(Equal(http.StatusOK))
}

func TestOCI_keepsTagsIfToldTo(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, text)
	r.base = r.another(t, registryhttp.Options{KeepTags: true}) + "/v2/acme/app/oci"
	for _, path := range []string{"/manifests/1", "/tags/reference/1"} {
		_, body := r.must(http.StatusMethodNotAllowed, http.MethodDelete, r.base+path, "", "")
		r.g.Expect(body).To(And(ContainSubstring("UNSUPPORTED"), ContainSubstring("delete the image by its digest")))
	}
	r.must(http.StatusAccepted, http.MethodDelete, r.base+"/manifests/"+d.String(), "", "")
}
