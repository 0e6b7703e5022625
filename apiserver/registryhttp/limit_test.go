package registryhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/patience"
)

// stored is the number of bytes that count toward the limit of acme/app.
func (w *world) stored(t *testing.T) int64 {
	t.Helper()
	p := must(w.Catalog.ProjectByPath(t.Context(), "acme/app"))
	return must(w.records.Stored(t.Context(), p.UID))
}

const overLimit = "the images of the project would take up more than the limit of"

func TestLimit_refusesClientThatPushesMore(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.registry.MaxSize = 8 << 10
	kept := w.push(t, "acme/app:1")
	filled := w.stored(t)
	g.Expect(filled).To(BeNumerically(">", 2*1024))
	w.push(t, "acme/open:1")
	g.Expect(w.stored(t)).To(Equal(filled), "another project has a limit of its own")

	w.registry.MaxSize = filled + 1000
	err := remote.Write(w.ref(t, "acme/app/web:2"), image(t), once("dan")...)
	g.Expect(err).To(MatchError(And(ContainSubstring("DENIED"), ContainSubstring(overLimit))))
	g.Expect(w.stored(t)).To(BeNumerically("<=", w.registry.MaxSize))

	// Content that exists needs no space, and can be read.
	w.registry.MaxSize = filled
	g.Expect(remote.Write(w.ref(t, "acme/app:again"), kept, once("dan")...)).To(Succeed())
	g.Expect(remote.Image(w.ref(t, "acme/app:again"), as("rita"))).Error().NotTo(HaveOccurred())
}

func TestLimit_countsWhatTakesUpSpace(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	r.world.registry.MaxSize = 1 << 20
	manifest, d := r.manifest(nil)
	images := int64(len("{}") + len("layer"))
	r.g.Expect(r.stored(t)).To(Equal(images))
	r.must(http.StatusCreated, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest, manifest)
	images += int64(len(manifest))
	r.g.Expect(r.stored(t)).To(Equal(images))
	r.blob("layer")
	r.must(http.StatusCreated, http.MethodPut, "/manifests/2", v1.MediaTypeImageManifest, manifest)
	r.g.Expect(r.stored(t)).To(Equal(images), "it is there already")

	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	half, _ := r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, "12345")
	r.g.Expect(r.stored(t)).To(Equal(images+5), "an unfinished upload")
	more, _ := r.must(http.StatusAccepted, http.MethodPatch, half.Get("Location"), binary, "678")
	r.g.Expect(r.stored(t)).To(Equal(images + 8))
	r.must(http.StatusCreated, http.MethodPut, with(more.Get("Location"), "digest="+digest.FromString("123456789").String()), binary, "9")
	r.g.Expect(r.stored(t)).To(Equal(images + 9))
	images += 9

	started, _ = r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	half, _ = r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, "12345")
	r.must(http.StatusNoContent, http.MethodDelete, half.Get("Location"), "", "")
	r.g.Expect(r.stored(t)).To(Equal(images), "a cancelled upload")

	_, body := r.must(http.StatusBadRequest, http.MethodPut, with(r.chunk("12345"), "digest="+digest.FromString("other").String()), "", "")
	r.g.Expect(body).To(ContainSubstring("DIGEST_INVALID"))
	r.g.Expect(r.stored(t)).To(Equal(images), "an upload with another digest")
	r.g.Expect(r.uploads()).To(BeEmpty())

	r.must(http.StatusAccepted, http.MethodDelete, "/blobs/"+digest.FromString("123456789").String(), "", "")
	r.must(http.StatusAccepted, http.MethodDelete, "/manifests/"+d.String(), "", "")
	r.g.Expect(r.stored(t)).To(Equal(images), "the contents stay until the garbage collection")
	r.advance()
	r.collect(t, registry.CollectOptions{})
	r.g.Expect(r.stored(t)).To(BeZero())
}

// chunk begins an upload with a chunk, and returns the URL at which the upload continues.
func (r *repository) chunk(content string) string {
	r.t.Helper()
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	half, _ := r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, content)
	return half.Get("Location")
}

// uploads returns the unfinished uploads in the storage.
func (r *repository) uploads() []string {
	r.t.Helper()
	all, err := r.registry.Storage().List(r.t.Context(), "/docker/registry/v2/repositories/repositories/"+r.all(r.t)[0].Place+"/_uploads")
	if !errors.As(err, new(driver.PathNotFoundError)) { // an object store has no empty directories
		r.g.Expect(err).NotTo(HaveOccurred())
	}
	return all
}

func TestLimit_countsUploadOfClientThatGoes(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	r.world.registry.MaxSize = 1 << 20
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	location, err := url.Parse(started.Get("Location"))
	r.g.Expect(err).NotTo(HaveOccurred())
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.host)
	r.g.Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(connection, "PATCH %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n12345",
		location.RequestURI(), r.host, r.bearer, binary)
	r.g.Expect(err).NotTo(HaveOccurred())
	r.g.Expect(connection.Close()).To(Succeed())
	r.g.Eventually(func() int64 { return r.stored(t) }).WithTimeout(patience.Wait).Should(BeEquivalentTo(5))
}

func TestLimit_countsUploadThatWasNotRecorded(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	location := r.chunk("1234567890") // without a limit
	r.g.Expect(r.stored(t)).To(BeZero())
	r.world.registry.MaxSize = 12
	_, body := r.must(http.StatusForbidden, http.MethodPatch, location, binary, "123")
	r.g.Expect(body).To(ContainSubstring(overLimit))
	r.g.Expect(r.stored(t)).To(BeZero())

	r.world.registry.MaxSize = 0
	location = r.chunk("1234567890")
	r.world.registry.MaxSize = 9
	_, body = r.must(http.StatusForbidden, http.MethodPut, with(location, "digest="+digest.FromString("1234567890").String()), "", "")
	r.g.Expect(body).To(ContainSubstring(overLimit))
	r.g.Expect(r.uploads()).To(BeEmpty())
}

func TestLimit_recordsLargeUploadMeanwhile(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	r.world.registry.MaxSize = 1 << 40
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, _, body := r.do(t, r.bearer, http.MethodPatch, started.Get("Location"), reader, http.Header{"Content-Type": {binary}})
		r.g.Expect(status).To(Equal(http.StatusForbidden), body)
	}()
	chunk := make([]byte, 1<<20)
	for range 70 {
		_, err := writer.Write(chunk)
		r.g.Expect(err).NotTo(HaveOccurred())
	}
	r.g.Eventually(func() int64 { return r.stored(t) }).WithTimeout(patience.Wait).Should(BeNumerically(">=", 64<<20))
	// Another client fills the project meanwhile.
	r.g.Expect(r.records.Keep(t.Context(), record.Content{RepositoryID: r.all(t)[0].ID, Name: "other", Size: 1 << 40})).To(Succeed())
	var err error
	for i := 0; err == nil && i < 200; i++ {
		_, err = writer.Write(chunk)
	}
	r.g.Expect(err).To(HaveOccurred())
	<-ended
	r.g.Expect(r.stored(t)).To(Equal(int64(1 << 40)))
}

func TestLimit_countsMountedLayer(t *testing.T) {
	r := newRepository(t, "acme/app/oci")
	r.world.registry.MaxSize = 20
	bearer, _ := r.world.bearer(t, "mary", "repository:acme/app/oci:pull", "repository:acme/app/other:pull,push")
	layer := r.blob("layer")
	other := &repository{world: r.world, t: t, g: r.g, bearer: bearer, base: "/v2/acme/app/other"}
	mount := func(status int, from v1.Descriptor) {
		other.must(status, http.MethodPost, "/blobs/uploads/?mount="+from.Digest.String()+"&from=acme/app/oci", "", "")
	}
	mount(http.StatusCreated, layer)
	r.g.Expect(r.stored(t)).To(Equal(2 * layer.Size))
	large := r.blob("0123456789")
	r.g.Expect(r.stored(t)).To(Equal(int64(20)))
	mount(http.StatusForbidden, large)
	mount(http.StatusCreated, layer) // it needs no space
	r.g.Expect(r.stored(t)).To(Equal(int64(20)))
}

func TestLimit_removesUploadThatExceedsIt(t *testing.T) {
	newRepository(t, "acme/app/oci").exceedLimit(t)
}

// exceedLimit expects that nothing is left of an upload that is too large.
func (r *repository) exceedLimit(t *testing.T) {
	t.Helper()
	r.world.registry.MaxSize = 10
	started, _ := r.must(http.StatusAccepted, http.MethodPost, "/blobs/uploads/", "", "")
	half, _ := r.must(http.StatusAccepted, http.MethodPatch, started.Get("Location"), binary, "12345")
	_, body := r.must(http.StatusForbidden, http.MethodPatch, half.Get("Location"), binary, strings.Repeat("6", 1<<20))
	r.g.Expect(body).To(And(ContainSubstring(`"DENIED"`), ContainSubstring(overLimit), ContainSubstring("the limit of 10 bytes")))
	r.must(http.StatusNotFound, http.MethodPatch, half.Get("Location"), binary, "6")
	r.g.Expect(r.stored(t)).To(BeZero())
	r.g.Expect(r.uploads()).To(BeEmpty())

	// Exactly as much as there is room for.
	full := r.blob("1234567890")
	r.must(http.StatusForbidden, http.MethodPost, "/blobs/uploads/", "", "")
	_, body = r.must(http.StatusForbidden, http.MethodPut, "/manifests/1", v1.MediaTypeImageManifest,
		`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageManifest+`","config":{"mediaType":"`+v1.MediaTypeImageConfig+`","size":10,"digest":"`+full.Digest.String()+`"},"layers":[]}`)
	r.g.Expect(body).To(ContainSubstring(overLimit))
}

func TestLimit_isCorrectedByCollection(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.registry.MaxSize = 1 << 30
	w.push(t, "acme/app:kept")
	kept := w.stored(t)
	w.push(t, "acme/app:gone")
	both := w.stored(t)
	g.Expect(both).To(BeNumerically(">", kept))
	of := w.record(t, "acme/app")
	// Processes that were killed, or a database from a backup.
	g.Expect(w.records.Keep(t.Context(), record.Content{RepositoryID: of.ID, Name: "sha256:" + strings.Repeat("0", 64), Size: 1 << 40})).To(Succeed())
	g.Expect(w.records.Keep(t.Context(), record.Content{RepositoryID: of.ID, Name: record.Upload("lost"), Size: 1 << 40})).To(Succeed())
	w.collect(t, registry.CollectOptions{})
	g.Expect(w.stored(t)).To(Equal(both))
	// A layer of no image, and an unfinished upload.
	r := w.client(t, "acme/app")
	both += r.blob("of no image").Size
	r.chunk("unfinished")
	both += int64(len("unfinished"))
	g.Expect(w.stored(t)).To(Equal(both))
	for _, c := range must(w.records.Contents(t.Context(), of.ID, "", 100)) {
		g.Expect(w.records.Drop(t.Context(), of.ID, c.Name)).To(Succeed())
	}
	g.Expect(w.stored(t)).To(BeZero())
	w.collect(t, registry.CollectOptions{})
	g.Expect(w.stored(t)).To(Equal(both))

	g.Expect(remote.Delete(w.ref(t, "acme/app:gone"), as("mary"))).To(Succeed())
	g.Expect(w.stored(t)).To(Equal(both), "the image remains available by its digest")
	w.advance()
	w.collect(t, registry.CollectOptions{})
	g.Expect(w.stored(t)).To(Equal(kept + int64(len("unfinished"))))
}
