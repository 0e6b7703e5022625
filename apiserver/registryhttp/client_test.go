package registryhttp_test

import (
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/internal/registry/token"
)

func TestRegistry_servesClient(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	pushed := w.push(t, "acme/app/web:1.0")
	want, err := pushed.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	for _, username := range []string{"root", "mary", "dan", "rita", "gus"} {
		got, err := remote.Image(w.ref(t, "acme/app/web:1.0"), as(username))
		g.Expect(err).NotTo(HaveOccurred(), username)
		g.Expect(got.Digest()).To(Equal(want))
	}
	tags, err := remote.List(w.ref(t, "acme/app/web").Context(), as("rita"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tags).To(Equal([]string{"1.0"}))
	for _, username := range []string{"", "sue", "bill"} {
		_, err := remote.Image(w.ref(t, "acme/app/web:1.0"), as(username))
		g.Expect(err).To(HaveOccurred(), username)
	}
	g.Expect(remote.Delete(w.ref(t, "acme/app/web:1.0"), as("dan"))).To(MatchError(ContainSubstring("UNAUTHORIZED")))
	g.Expect(remote.Delete(w.ref(t, "acme/app/web:1.0"), as("mary"))).To(Succeed())
	_, err = remote.Image(w.ref(t, "acme/app/web:1.0"), as("mary"))
	g.Expect(err).To(MatchError(ContainSubstring("MANIFEST_UNKNOWN")))
	_, err = remote.Image(w.ref(t, "acme/app/web@"+want.String()), as("mary"))
	g.Expect(err).NotTo(HaveOccurred(), "only the tag is gone")
}

func TestRegistry_servesIndexToAnonymousCallersOfPublicProject(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	index, err := random.Index(512, 1, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.WriteIndex(w.ref(t, "acme/open:multi"), index, as("dan"))).To(Succeed())
	got, err := remote.Index(w.ref(t, "acme/open:multi"), as(""))
	g.Expect(err).NotTo(HaveOccurred())
	want, err := index.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Digest()).To(Equal(want))
	g.Expect(remote.Write(w.ref(t, "acme/open:mine"), image(t), as(""))).To(MatchError(ContainSubstring("UNAUTHORIZED")))
}

func TestRegistry_mountsLayersOnlyOfReadableRepositories(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	pushed := w.push(t, "acme/app:1")
	source, err := remote.Image(w.ref(t, "acme/app:1"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(w.ref(t, "acme/open/copy:1"), source, as("dan"))).To(Succeed())
	layers, err := pushed.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	d, err := layers[0].Digest()
	g.Expect(err).NotTo(HaveOccurred())

	both, _ := w.bearer(t, "dan", "repository:acme/open/other:push,pull", "repository:acme/app:pull")
	status, header, body := w.do(t, both, http.MethodPost, "/v2/acme/open/other/blobs/uploads/?mount="+d.String()+"&from=acme/app", nil, nil)
	g.Expect(status).To(Equal(http.StatusCreated), body)
	g.Expect(header.Get("Location")).To(HaveSuffix("/v2/acme/open/other/blobs/" + d.String()))
	one, _ := w.bearer(t, "dan", "repository:acme/open/other:push,pull")
	status, header, _ = w.do(t, one, http.MethodPost, "/v2/acme/open/other/blobs/uploads/?mount="+d.String()+"&from=acme/app", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized))
	g.Expect(header.Get("Www-Authenticate")).To(ContainSubstring("repository:acme/app:pull"))
}

func TestRegistry_servesOnlyProjectOfToken(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/open:1")
	bearer, _ := w.bearer(t, "dan", "repository:acme/open:pull")
	accept := http.Header{"Accept": {"application/vnd.docker.distribution.manifest.v2+json"}}
	status, _, body := w.do(t, bearer, http.MethodGet, "/v2/acme/open/manifests/1", nil, accept)
	g.Expect(status).To(Equal(http.StatusOK), body)

	g.Expect(w.Client.Delete(t.Context(), project("open", 21, "Public", "Enabled"))).To(Succeed())
	g.Expect(w.Client.Create(t.Context(), project("open", 21, "Public", "Enabled"))).To(Succeed())
	status, _, body = w.do(t, bearer, http.MethodGet, "/v2/acme/open/manifests/1", nil, accept)
	g.Expect(status).To(Equal(http.StatusUnauthorized), body)
	again, _ := w.bearer(t, "dan", "repository:acme/open:pull")
	status, _, body = w.do(t, again, http.MethodGet, "/v2/acme/open/manifests/1", nil, accept)
	g.Expect(status).To(Equal(http.StatusNotFound), body)
	g.Expect(body).To(ContainSubstring("NAME_UNKNOWN"), "the new project has no images")
}

func TestToken_expires(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/open:1")
	bearer, _ := w.bearer(t, "dan", "repository:acme/open:pull")
	w.clock.Step(6 * 60 * 1e9)
	status, header, _ := w.do(t, bearer, http.MethodGet, "/v2/acme/open/tags/list", nil, nil)
	g.Expect(status).To(Equal(http.StatusUnauthorized))
	g.Expect(header.Get("Www-Authenticate")).To(ContainSubstring(`error="invalid_token"`))
	_, err := w.keys.Verify(bearer)
	g.Expect(err).To(MatchError(token.ErrInvalid))
}

func TestRegistry_uploadsLayersThatCannotBeMounted(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, familytest.User("ed", 8), familytest.InProject("acme", "open", "ed", v1alpha1.RoleDeveloper))
	w.push(t, "acme/app:1")
	source, err := remote.Image(w.ref(t, "acme/app:1"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = remote.Image(w.ref(t, "acme/app:1"), as("ed"))
	g.Expect(err).To(HaveOccurred())
	// The client knows where the layers are, and asks to mount them.
	g.Expect(remote.Write(w.ref(t, "acme/open/copy:1"), source, as("ed"))).To(Succeed())
	got, err := remote.Image(w.ref(t, "acme/open/copy:1"), as("ed"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(got)).To(Succeed())
}
