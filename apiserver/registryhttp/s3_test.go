package registryhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"

	"github.com/forgeplane/forgeplane/apiserver/registryhttp"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/test/tools"
)

// newWorldOnS3 is newWorld with the images in an object store.
func newWorldOnS3(t *testing.T) *world {
	t.Helper()
	s3, err := registry.OpenConfigured(t.Context(), tools.StartS3(t).Storage())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return newWorldOn(t, s3, httptest.NewServer)
}

func TestS3_servesClient(t *testing.T) {
	g, w := NewWithT(t), newWorldOnS3(t)
	w.push(t, "acme/app:1")
	got, err := remote.Image(w.ref(t, "acme/app:1"), as("rita"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(got)).To(Succeed())
	g.Expect(remote.Write(w.ref(t, "acme/open:copied"), got, as("dan"))).To(Succeed(), "the client mounts the layers")
	copied, err := remote.Image(w.ref(t, "acme/open:copied"), as("sue"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Image(copied)).To(Succeed())
	g.Expect(remote.Delete(w.ref(t, "acme/app:1"), as("mary"))).To(Succeed())
	w.client(t, "acme/app/oci").pushInChunks()
}

func TestS3_takesChunksOfAllSizesInProcessesInTurn(t *testing.T) {
	r := newWorldOnS3(t).client(t, "acme/app/oci")
	processes := []string{r.server.URL, r.another(t, registryhttp.Options{})}
	// A part of an object of S3 has 5 MiB at least, and the last one can have less.
	chunks := []string{strings.Repeat("a", 100), strings.Repeat("b", 6<<20), "c", strings.Repeat("d", 12<<20), strings.Repeat("e", 1000)}
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	at := started.Get("Location")
	for i, chunk := range chunks {
		next, _ := r.must(http.StatusAccepted, http.MethodPatch, r.at(processes[i%2], at), binary, chunk)
		at = next.Get("Location")
	}
	all := strings.Join(chunks, "")
	d := digest.FromString(all)
	r.must(http.StatusCreated, http.MethodPut, with(at, "digest="+d.String()), "", "")
	_, body := r.must(http.StatusOK, http.MethodGet, "/blobs/"+d.String(), "", "")
	r.g.Expect(digest.FromString(body)).To(Equal(d))
}

func TestS3_keepsNothingOfUploadThatExceedsLimit(t *testing.T) {
	newWorldOnS3(t).client(t, "acme/app/oci").exceedLimit(t)
}
