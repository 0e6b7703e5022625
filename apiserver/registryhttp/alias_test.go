package registryhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/registry"
)

// aliased is an image that its client names by digests of SHA-512, as it does with its blobs.
type aliased struct {
	layer, manifest digest.Digest
	text            string
}

// pushAliased pushes an image without a tag.
func (r *repository) pushAliased(content string) aliased {
	r.t.Helper()
	put := func(text string) digest.Digest {
		started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
		d := digest.SHA512.FromString(text)
		header, _ := r.must(http.StatusCreated, http.MethodPut, with(started.Get("Location"), "digest="+d.String()), binary, text)
		r.g.Expect(header.Get("Docker-Content-Digest")).To(Equal(d.String()))
		return d
	}
	a := aliased{layer: put(content)}
	config := put("{}")
	a.text = fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		v1.MediaTypeImageManifest, v1.MediaTypeImageConfig, config, v1.MediaTypeImageLayer, a.layer, len(content))
	a.manifest = digest.SHA512.FromString(a.text)
	header, _ := r.must(http.StatusCreated, http.MethodPut, "/manifests/"+a.manifest.String(), v1.MediaTypeImageManifest, a.text)
	r.g.Expect(header.Get("Docker-Content-Digest")).To(Equal(a.manifest.String()))
	return a
}

// has expects that the image can be pulled.
func (r *repository) has(a aliased) {
	r.t.Helper()
	for _, named := range []string{a.manifest.String(), digest.FromString(a.text).String()} {
		header, body := r.must(http.StatusOK, http.MethodGet, "/manifests/"+named, "", "", accept(v1.MediaTypeImageManifest)...)
		r.g.Expect(header.Get("Docker-Content-Digest")).To(Equal(named))
		r.g.Expect(body).To(Equal(a.text))
	}
	r.must(http.StatusOK, http.MethodGet, "/blobs/"+a.layer.String(), "", "")
}

func TestAlias_isAnotherNameOfImage(t *testing.T) {
	r := newRepository(t, "acme/app")
	a := r.pushAliased("layer")
	r.has(a)
	wrong := digest.SHA512.FromString("wrong").String()
	_, body := r.must(http.StatusBadRequest, http.MethodPut, "/manifests/"+wrong, v1.MediaTypeImageManifest, a.text)
	r.g.Expect(body).To(ContainSubstring("DIGEST_INVALID"))
	_, body = r.must(http.StatusRequestEntityTooLarge, http.MethodPut, "/manifests/"+wrong, v1.MediaTypeImageManifest, a.text+strings.Repeat(" ", 4<<20))
	r.g.Expect(body).To(ContainSubstring("4 MiB"))
}

func TestAlias_goesWithImage(t *testing.T) {
	for _, by := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
		t.Run(string(by), func(t *testing.T) {
			r := newRepository(t, "acme/app")
			a := r.pushAliased("layer")
			r.must(http.StatusAccepted, http.MethodDelete, "/manifests/"+by.FromString(a.text).String(), "", "")
			for _, named := range []string{a.manifest.String(), digest.FromString(a.text).String()} {
				r.must(http.StatusNotFound, http.MethodGet, "/manifests/"+named, "", "", accept(v1.MediaTypeImageManifest)...)
			}
			// The content itself is still in the storage, and can be pushed again.
			r.has(r.pushAliased("layer"))
		})
	}
}

func TestAlias_isCollectedWithImage(t *testing.T) {
	r := newRepository(t, "acme/app")
	kept, gone := r.pushAliased("kept"), r.pushAliased("gone")
	r.must(http.StatusCreated, http.MethodPut, "/manifests/kept", v1.MediaTypeImageManifest, kept.text)
	r.advance()
	r.bearer, _ = r.world.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	collected := r.collect(t, registry.CollectOptions{})
	r.g.Expect(collected.Manifests).To(Equal(1))
	r.g.Expect(collected.Blobs).To(Equal(2), "the manifest and its layer")
	r.has(kept)
	r.must(http.StatusNotFound, http.MethodGet, "/manifests/"+gone.manifest.String(), "", "", accept(v1.MediaTypeImageManifest)...)
	r.must(http.StatusNotFound, http.MethodGet, "/blobs/"+gone.layer.String(), "", "")
	r.g.Expect(r.collect(t, registry.CollectOptions{})).To(Equal(registry.Collected{}))
	r.has(r.pushAliased("gone"))
}

func TestAlias_needsRole(t *testing.T) {
	w := newWorld(t)
	text := "{}"
	at := "http://" + w.host + "/v2/acme/app/manifests/" + digest.SHA512.FromString(text).String()
	for username, status := range map[string]int{"": http.StatusUnauthorized, "rita": http.StatusUnauthorized, "dan": http.StatusBadRequest} {
		g := NewWithT(t)
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, at, strings.NewReader(text))
		g.Expect(err).NotTo(HaveOccurred())
		q.Header.Set("Content-Type", v1.MediaTypeImageManifest)
		if username != "" {
			bearer, _ := w.bearer(t, username, "repository:acme/app:pull,push")
			q.Header.Set("Authorization", "Bearer "+bearer)
		}
		answer, err := http.DefaultClient.Do(q)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer).To(HaveHTTPStatus(status), username)
		g.Expect(answer.Body.Close()).To(Succeed())
	}
}
