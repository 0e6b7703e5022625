package registryhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/test/tools"
)

// apis are the results of the conformance program for each request of the workflows of the specification.
var apis = map[string]map[string]string{
	"Determining support": {"Ping": "Pass"},
	"Pull": {
		"Manifest get by digest": "Pass", "Manifest get by tag": "Pass", "Manifest head by digest": "Pass", "Manifest head by tag": "Pass",
		"Blob get": "Pass", "Blob get range": "Pass", "Blob head": "Pass",
	},
	"Push": {
		"Blob push": "Pass", "Blob post put": "Pass", "Blob chunked": "Pass", "Blob streaming": "Pass", "Blob mount": "Pass", "Blob upload cancel": "Pass",
		"Manifest put by digest": "Pass", "Manifest put by tag": "Pass", "Manifest put with subject": "Pass",
		// The specification lets a registry ask for the body in a second request, and for the repository of a layer.
		"Blob post only": "Skip", "Blob anonymous mount": "Skip",
		"Manifest put with tag params": "Disabled", // not in version 1.1
	},
	"Content discovery": {"Tag listing": "Pass", "Referrers": "Pass"},
	"Content management": {
		"Tag delete": "Pass", "Tag delete atomic": "Pass", "Manifest delete": "Pass", "Manifest delete atomic": "Pass",
		"Blob delete": "Pass", "Blob delete atomic": "Pass",
	},
}

// TestSpecification_isMet runs the conformance program of the OCI distribution specification 1.1, with its optional parts.
func TestSpecification_isMet(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	program := &tool{t, tools.Images(t, "conformance"), t.TempDir()}
	t.Setenv("OCI_REGISTRY", w.host)
	t.Setenv("OCI_TLS", "disabled")
	t.Setenv("OCI_VERSION", "1.1")
	t.Setenv("OCI_REPO1", "acme/app/one")
	t.Setenv("OCI_REPO2", "acme/app/two")
	t.Setenv("OCI_USERNAME", "mary")
	t.Setenv("OCI_PASSWORD", familytest.Value("mary"))
	t.Setenv("OCI_API_BLOBS_DIGEST_HEADER", "true")
	t.Setenv("OCI_API_BLOBS_UPLOAD_CANCEL", "true")
	t.Setenv("OCI_API_MANIFESTS_DIGEST_HEADER", "true")
	said := program.must()

	text, err := os.ReadFile(filepath.Join(program.scratch, "results", "results.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var results struct {
		APIs map[string]string `json:"apis"`
		Data map[string]string `json:"data"`
	}
	g.Expect(yaml.Unmarshal(text, &results)).To(Succeed())
	for workflow, want := range apis {
		for api, status := range want {
			g.Expect(results.APIs).To(HaveKeyWithValue(api, status), "%s\n%s", workflow, said)
			delete(results.APIs, api)
		}
	}
	g.Expect(results.APIs).To(BeEmpty())
	g.Expect(results.Data).To(HaveLen(24))
	for content, status := range results.Data {
		want := "Pass"
		if content == "Sparse Manifests" || strings.HasPrefix(content, "Tag Param") {
			want = "Disabled" // not in version 1.1
		}
		g.Expect(status).To(Equal(want), "%s\n%s", content, said)
	}
}

// TestSpecification_alsoMeans has requirements of the specification that the conformance program does not check. The tests of OCI have the requests
// that depend on each other.
func TestSpecification_alsoMeans(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	text, d := r.manifest(nil)
	for _, tag := range []string{"b", "a", "B", "1.0", strings.Repeat("t", 128)} {
		r.must(http.StatusCreated, http.MethodPut, "/manifests/"+tag, v1.MediaTypeImageManifest, text)
	}
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":"application/vnd.example.set","manifests":[],"subject":{"mediaType":%q,"digest":%q,"size":%d}}`,
		v1.MediaTypeImageIndex, v1.MediaTypeImageManifest, d, len(text))
	set := digest.FromString(index)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/"+set.String(), v1.MediaTypeImageIndex, index)
	chunks := digest.FromString("first last").String()
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	first, _ := r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, "first ")
	none := digest.FromString("none").String()
	// Four MiB altogether.
	padded := func(length int) string { return text + strings.Repeat(" ", length-len(text)) }

	for _, c := range []struct {
		requirement        string
		status             int
		method, path, body string
		header             []string // of the request
		want               map[string]string
		shown              string // a part of the answer
	}{
		// Pull.
		{requirement: "HEAD of a manifest says its length", status: http.StatusOK, method: http.MethodHead, path: "/manifests/1.0",
			header: accept(v1.MediaTypeImageManifest), want: map[string]string{"Content-Length": strconv.Itoa(len(text))}},
		{requirement: "a tag has at most 128 characters", status: http.StatusOK, method: http.MethodHead, path: "/manifests/" + strings.Repeat("t", 128),
			header: accept(v1.MediaTypeImageManifest)},
		{requirement: "a range that does not exist is refused", status: http.StatusRequestedRangeNotSatisfiable, method: http.MethodGet,
			path: "/blobs/" + digest.FromString("layer").String(), header: []string{"Range", "bytes=10-20"}},
		// Push.
		{requirement: "the last chunk can come with the PUT", status: http.StatusCreated, method: http.MethodPut, path: with(first.Get("Location"), "digest="+chunks),
			body: "last", header: []string{"Content-Type", binary, "Content-Range", "6-9"}, want: map[string]string{"Docker-Content-Digest": chunks}},
		{requirement: "an upload that is done is unknown", status: http.StatusNotFound, method: http.MethodGet, path: first.Get("Location"), shown: "BLOB_UPLOAD_UNKNOWN"},
		{requirement: "a manifest of 4 MiB is accepted", status: http.StatusCreated, method: http.MethodPut, path: "/manifests/large", body: padded(4 << 20),
			header: []string{"Content-Type", v1.MediaTypeImageManifest}, want: map[string]string{"Docker-Content-Digest": digest.FromString(padded(4 << 20)).String()}},
		{requirement: "a longer manifest is refused", status: http.StatusRequestEntityTooLarge, method: http.MethodPut, path: "/manifests/larger", body: padded(4<<20 + 1),
			header: []string{"Content-Type", v1.MediaTypeImageManifest}, shown: "MANIFEST_INVALID"},
		{requirement: "a mount of a blob that does not exist begins an upload", status: http.StatusAccepted, method: http.MethodPost,
			path: "/blobs/uploads/?mount=" + none + "&from=acme/app/oci"},
		// Content discovery.
		{requirement: "tags are in lexical order", status: http.StatusOK, method: http.MethodGet, path: "/tags/list?n=4", shown: `"tags":["1.0","B","a","b"]`},
		{requirement: "a list of no tags has no next page", status: http.StatusOK, method: http.MethodGet, path: "/tags/list?n=0", want: map[string]string{"Link": ""},
			shown: `"tags":[]`},
		{requirement: "an index can be a referrer", status: http.StatusOK, method: http.MethodGet, path: "/referrers/" + d.String(),
			want: map[string]string{"Content-Type": v1.MediaTypeImageIndex, "OCI-Filters-Applied": ""}, shown: `"artifactType":"application/vnd.example.set"`},
		{requirement: "a filter that fits nothing gives an empty index", status: http.StatusOK, method: http.MethodGet, path: "/referrers/" + d.String() + "?artifactType=none",
			want: map[string]string{"OCI-Filters-Applied": "artifactType"}, shown: `"manifests":[]`},
		// Content management.
		{requirement: "the deletion of a manifest that does not exist is refused", status: http.StatusNotFound, method: http.MethodDelete, path: "/manifests/" + none,
			shown: "MANIFEST_UNKNOWN"},
		{requirement: "a tag is deleted", status: http.StatusAccepted, method: http.MethodDelete, path: "/manifests/b"},
		{requirement: "the manifest of a deleted tag stays", status: http.StatusOK, method: http.MethodGet, path: "/manifests/" + d.String(),
			header: accept(v1.MediaTypeImageManifest)},
		{requirement: "a referrer is deleted", status: http.StatusAccepted, method: http.MethodDelete, path: "/manifests/" + set.String()},
		{requirement: "a deleted referrer is not listed", status: http.StatusOK, method: http.MethodGet, path: "/referrers/" + d.String(), shown: `"manifests":[]`},
	} {
		header, body := r.must(c.status, c.method, c.path, "", c.body, c.header...)
		for name, value := range c.want {
			r.g.Expect(header.Get(name)).To(Equal(value), "%s: %s", c.requirement, name)
		}
		r.g.Expect(body).To(ContainSubstring(c.shown), c.requirement)
		if c.status < http.StatusBadRequest || c.status == http.StatusRequestedRangeNotSatisfiable {
			continue
		}
		var said struct {
			Errors []struct{ Code, Message string }
		}
		r.g.Expect(json.Unmarshal([]byte(body), &said)).To(Succeed(), c.requirement)
		r.g.Expect(said.Errors).To(ContainElement(HaveField("Code", MatchRegexp(`^[A-Z_]+$`))), c.requirement)
	}
}
