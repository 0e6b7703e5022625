package registryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/registry"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/test/seed"
)

// advance lets time pass, until everything that is stored is older than the grace period.
func (w *world) advance() {
	now := w.clock.Now()
	if machine := time.Now(); machine.After(now) {
		now = machine
	}
	now = now.Add(2 * registry.DefaultGrace)
	w.clock.SetTime(now)
	w.Clock.SetTime(now)
}

// blobs returns the number of blobs in the storage.
func (w *world) blobs(t *testing.T) int {
	t.Helper()
	count := 0
	var walk func(path string)
	walk = func(path string) {
		below, err := w.registry.Storage().List(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range below {
			info, err := w.registry.Storage().Stat(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(b)
			} else {
				count++
			}
		}
	}
	walk("/docker/registry/v2/blobs")
	return count
}

func (w *world) collect(t *testing.T, o registry.CollectOptions) registry.Collected {
	t.Helper()
	c, err := w.registry.Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCollect_removesOnlyWhatNoTagNeeds(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	kept := w.push(t, "acme/app:kept")
	w.push(t, "acme/app:gone")
	index, err := random.Index(512, 1, 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.WriteIndex(w.ref(t, "acme/open:multi"), index, as("dan"))).To(Succeed())
	d, err := kept.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	size, err := kept.Size()
	g.Expect(err).NotTo(HaveOccurred())
	mediaType, err := kept.MediaType()
	g.Expect(err).NotTo(HaveOccurred())
	signature := mutate.Subject(image(t), v1.Descriptor{MediaType: mediaType, Digest: d, Size: size}).(v1.Image)
	signed, err := signature.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(w.ref(t, "acme/app@"+signed.String()), signature, as("dan"))).To(Succeed())
	g.Expect(remote.Delete(w.ref(t, "acme/app:gone"), as("mary"))).To(Succeed())

	before := w.blobs(t)
	g.Expect(w.collect(t, registry.CollectOptions{})).To(Equal(registry.Collected{}), "everything is new")
	w.advance()
	g.Expect(w.collect(t, registry.CollectOptions{KeepUntagged: true})).To(Equal(registry.Collected{}))
	w.advance()
	collected := w.collect(t, registry.CollectOptions{})
	g.Expect(collected.Manifests).To(Equal(1))
	g.Expect(collected.Blobs).To(Equal(4), "the manifest, its configuration and two layers")
	g.Expect(w.blobs(t)).To(Equal(before - 4))
	for _, reference := range []string{"acme/app:kept", "acme/app@" + signed.String()} {
		got, err := remote.Image(w.ref(t, reference), as("dan"))
		g.Expect(err).NotTo(HaveOccurred(), reference)
		g.Expect(validate.Image(got)).To(Succeed(), reference)
	}
	got, err := remote.Index(w.ref(t, "acme/open:multi"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(got)).To(Succeed())

	// The image can be pushed again, although the client has seen its layers before.
	w.push(t, "acme/app:gone")
}

func TestCollect_removesNothingWithTheDatabaseOfAnotherStorage(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/app:kept")
	before := w.blobs(t)
	w.advance()
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "activity.db"), record.Migrations())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(db.Close()).To(Succeed()) })
	other, err := registry.New(t.Context(), w.registry.Storage(), record.New(db, w.clock), w.registry.Names, w.clock)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = other.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("check that both belong together")))
	g.Expect(w.blobs(t)).To(Equal(before))
	_, err = remote.Image(w.ref(t, "acme/app:kept"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
}

func TestCollect_removesWhatDeletedRepositoryHasLeft(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	w.push(t, "acme/app:1")
	before := w.blobs(t)
	w.push(t, "acme/open:kept")
	page, err := w.records.After(t.Context(), 0, 10)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.records.Remove(t.Context(), page[0].ID)).To(Succeed())
	w.advance()
	g.Expect(w.collect(t, registry.CollectOptions{})).To(And(HaveField("Repositories", 1), HaveField("Blobs", before)))
	_, err = remote.Image(w.ref(t, "acme/open:kept"), as("dan"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.collect(t, registry.CollectOptions{})).To(Equal(registry.Collected{}))
}

func TestCollect_refusesShortGracePeriod(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	_, err := w.registry.Collect(t.Context(), registry.CollectOptions{Grace: time.Minute})
	g.Expect(err).To(MatchError(ContainSubstring("at least 1h0m0s")))
}

// TestCollect_losesNothingOfConcurrentPushes pushes images of a few layers again and again. Between two rounds everything gets old, so that
// the garbage collections of two processes remove layers at the moments at which clients need them.
func TestCollect_losesNothingOfConcurrentPushes(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	var layers []v1.Layer
	for range 6 {
		l, err := random.Layer(256, "application/vnd.docker.image.rootfs.diff.tar.gzip")
		g.Expect(err).NotTo(HaveOccurred())
		layers = append(layers, l)
	}
	var collected atomic.Int64
	pushed := 0
	for round := range 8 {
		w.advance()
		ctx, stop := context.WithCancel(t.Context())
		var pushes, collections sync.WaitGroup
		for _, process := range []*registry.Registry{w.registry, w.through(t, &hooked{})} {
			collections.Go(func() {
				for ctx.Err() == nil {
					c, err := process.Collect(ctx, registry.CollectOptions{})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					collected.Add(int64(c.Blobs))
				}
			})
		}
		for client := range 3 {
			pushes.Go(func() {
				tag := fmt.Sprintf("acme/app/c%d:tag", client)
				chance := rand.New(rand.NewPCG(seed.Value(), uint64(3*round+client)))
				i, err := mutate.AppendLayers(empty.Image, layers[chance.IntN(6)], layers[chance.IntN(6)])
				if err == nil {
					err = remote.Write(w.ref(t, tag), i, as("mary"))
				}
				if err == nil {
					var got v1.Image
					if got, err = remote.Image(w.ref(t, tag), as("mary")); err == nil {
						err = validate.Image(got)
					}
				}
				if err == nil && round%2 == 0 {
					err = remote.Delete(w.ref(t, tag), as("mary"))
				}
				if err != nil {
					t.Errorf("round %d, client %d: %v", round, client, err)
				}
			})
		}
		pushes.Wait()
		stop()
		collections.Wait()
		pushed += 3
	}
	if collected.Load() == 0 {
		t.Error("nothing was ever collected, so the test shows nothing")
	}
	t.Logf("%d pushes, %d blobs collected", pushed, collected.Load())
}

// hooked is a storage that calls a function before it reads or removes a file. It fails if crash says so, and then no more.
type hooked struct {
	driver.StorageDriver
	get, remove func(path string)
	crash       func() error
}

func (h *hooked) GetContent(ctx context.Context, path string) ([]byte, error) {
	if h.get != nil {
		h.get(path)
	}
	return h.StorageDriver.GetContent(ctx, path)
}

func (h *hooked) Delete(ctx context.Context, path string) error {
	if h.remove != nil {
		h.remove(path)
	}
	if h.crash != nil {
		if err := h.crash(); err != nil {
			return err
		}
	}
	return h.StorageDriver.Delete(ctx, path)
}

// through returns the registry of another process, whose storage is h in front of the storage.
func (w *world) through(t *testing.T, h *hooked) *registry.Registry {
	t.Helper()
	h.StorageDriver = w.registry.Storage()
	r, err := registry.New(t.Context(), h, w.records, w.registry.Names, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCollect_keepsTagsWhileClientDeletesImage(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	tags := []string{"a", "b", "c", "d"}
	digests := map[string]string{}
	for _, tag := range tags {
		d, err := w.push(t, "acme/app:"+tag).Digest()
		g.Expect(err).NotTo(HaveOccurred())
		digests[d.String()] = tag
	}
	w.advance()
	bearer, _ := w.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	gone := ""
	other := w.through(t, &hooked{get: func(path string) {
		if gone != "" {
			return
		}
		for d, tag := range digests { // the collection reads the first manifest
			if gone == "" && strings.Contains(path, strings.TrimPrefix(d, "sha256:")) {
				gone = tag
				status, _, body := w.do(t, bearer, http.MethodDelete, "/v2/acme/app/manifests/"+d, nil, nil)
				g.Expect(status).To(Equal(http.StatusAccepted), body)
			}
		}
	}})
	_, err := other.Collect(t.Context(), registry.CollectOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gone).NotTo(BeEmpty())
	for _, tag := range tags {
		got, err := remote.Image(w.ref(t, "acme/app:"+tag), as("dan"))
		if tag == gone {
			g.Expect(err).To(HaveOccurred())
			continue
		}
		g.Expect(err).NotTo(HaveOccurred(), tag)
		g.Expect(validate.Image(got)).To(Succeed(), tag)
	}
}

func TestCollect_refusesBlobWhoseRemovalIsSlow(t *testing.T) {
	r := newRepository(t, "acme/app")
	layer := r.blob("a layer")
	r.advance()
	r.push(t, "acme/open:1") // so that the database belongs to the storage
	slow := false
	other := r.through(t, &hooked{remove: func(path string) {
		if slow || !strings.HasSuffix(path, layer.Digest.Encoded()) || !strings.Contains(path, "/blobs/") {
			return
		}
		slow = true
		r.Clock.SetTime(r.Clock.Now().Add(5 * time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		r.g.Expect(r.records.Touch(ctx, layer.Digest.String())).NotTo(Succeed())
	}})
	_, err := other.Collect(t.Context(), registry.CollectOptions{})
	r.g.Expect(err).NotTo(HaveOccurred())
	r.g.Expect(slow).To(BeTrue())
	r.g.Expect(r.records.Touch(t.Context(), layer.Digest.String())).To(Succeed())
}

func TestCollect_keepsSignatureOfImageThatStays(t *testing.T) {
	r := newRepository(t, "acme/app")
	config := r.blob("{}")
	image := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},"layers":[]}`, config.Digest)
	signed := digest.FromString(image)
	signature := fmt.Sprintf(`{"schemaVersion":2,"artifactType":"x/signature","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":%q,"size":2},"layers":[],"subject":{"mediaType":%q,"digest":%q,"size":1}}`,
		config.Digest, ociv1.MediaTypeImageManifest, signed)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/"+signed.String(), ociv1.MediaTypeImageManifest, image)
	r.must(http.StatusCreated, http.MethodPut, "/manifests/"+digest.FromString(signature).String(), ociv1.MediaTypeImageManifest, signature)
	r.advance()
	r.bearer, _ = r.world.bearer(t, "mary", "repository:acme/app:pull,push,delete")
	r.must(http.StatusOK, http.MethodHead, "/manifests/"+signed.String(), "", "") // a client that is about to push the image
	r.collect(t, registry.CollectOptions{})
	_, list := r.must(http.StatusOK, http.MethodGet, "/referrers/"+signed.String(), "", "")
	r.g.Expect(list).To(ContainSubstring("x/signature"))
	r.advance()
	r.push(t, "acme/open:1")
	r.g.Expect(r.collect(t, registry.CollectOptions{})).To(HaveField("Manifests", 2), "nobody has needed the image for longer")
}

func TestCollect_readsWhatClientsCannotPush(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	kept := w.push(t, "acme/app:kept")
	layers, err := kept.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	d, err := layers[0].Digest()
	g.Expect(err).NotTo(HaveOccurred())
	// A manifest that the library cannot read, with the tag of the image.
	content := []byte(`{"schemaVersion":2,"manifests":"x","layers":"` + d.String() + `"}`)
	malformed := digest.FromBytes(content)
	storage := w.registry.Storage()
	g.Expect(storage.PutContent(t.Context(), fmt.Sprintf("/docker/registry/v2/blobs/sha256/%s/%s/data", malformed.Encoded()[:2], malformed.Encoded()), content)).To(Succeed())
	base := "/docker/registry/v2/repositories/repositories/" + w.record(t, "acme/app").Place + "/_manifests/"
	for _, link := range []string{"revisions/sha256/" + malformed.Encoded() + "/link", "tags/kept/current/link"} {
		g.Expect(storage.PutContent(t.Context(), base+link, []byte(malformed))).To(Succeed())
	}
	w.advance()
	w.collect(t, registry.CollectOptions{})
	bearer, _ := w.bearer(t, "dan", "repository:acme/app:pull")
	status, _, body := w.do(t, bearer, http.MethodGet, "/v2/acme/app/blobs/"+d.String(), nil, nil)
	g.Expect(status).To(Equal(http.StatusOK), body)
	g.Expect(w.imagesOf(t, "acme/app").Detail(t.Context(), "kept")).To(HaveField("Size", BeNil()))
}

func TestCollect_isDoneByNextOneAfterCrash(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	kept := w.push(t, "acme/app:kept")
	var again []v1.Image
	for range 3 {
		gone := w.push(t, "acme/app:gone")
		again = append(again, gone)
		g.Expect(remote.Delete(w.ref(t, "acme/app:gone"), as("mary"))).To(Succeed())
	}
	crashes, holds := 0, databasetest.SQL(t, w.database)
	for ended := false; !ended; {
		// The process ends before one removal, or after it and before it is recorded: the storage tells neither.
		w.advance()
		// The database has a clock of its own, by which what the lost process held is free after ten minutes.
		_, err := holds.ExecContext(t.Context(), "UPDATE container_blobs SET sweeping_until = 1 WHERE sweeping_until IS NOT NULL")
		g.Expect(err).NotTo(HaveOccurred())
		left := crashes
		crashed := errors.New("the process has crashed")
		other := w.through(t, &hooked{crash: func() error {
			if left--; left < 0 {
				return crashed
			}
			return nil
		}})
		_, err = other.Collect(t.Context(), registry.CollectOptions{})
		if ended = err == nil; !ended {
			g.Expect(err).To(MatchError(crashed))
			crashes++
		}
		got, err := remote.Image(w.ref(t, "acme/app:kept"), as("dan"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(got)).To(Succeed())
		g.Expect(got.Digest()).To(Equal(must(kept.Digest())))
	}
	g.Expect(crashes).To(BeNumerically(">", 3))
	g.Expect(w.blobs(t)).To(Equal(4), "those of the image that was kept")
	for i, image := range again {
		to := w.ref(t, fmt.Sprintf("acme/app:again-%d", i))
		g.Expect(remote.Write(to, image, as("dan"))).To(Succeed())
		got, err := remote.Image(to, as("dan"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(got)).To(Succeed())
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
