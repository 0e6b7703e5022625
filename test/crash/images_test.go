package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn" // a client of registries that many tools are made of
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/uptrace/bun"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/registry/record"
	"github.com/forgeplane/forgeplane/internal/registry/registrytest"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/rest"
)

const (
	// pier is the project of the images.
	pier = "pier"
	// worn is the number of tags that a cleanup deletes, and doomed that of a repository to delete.
	worn, doomed = 400, 400
	// unused is the age of content that no image needs, beyond the grace period of a garbage collection.
	unused = 2 * time.Hour
)

// maxWithImages is a token for everything that Max may do.
const maxWithImages = `
apiVersion: forgeplane.dev/v1alpha1
kind: AccessToken
metadata: {name: max-images}
spec: {userRef: {name: max}, scopes: [api], secretRef: {name: max-images}}
`

// docker is a client of the container registry.
type docker struct {
	options []remote.Option
}

func newDocker(token string) docker {
	return docker{[]remote.Option{
		remote.WithAuth(&authn.Basic{Username: "max", Password: token}), remote.WithRetryPredicate(func(error) bool { return false }), remote.WithJobs(1),
	}}
}

// at returns the name of an image in a repository of the project.
func (d docker) at(repository, tag string) name.Reference {
	GinkgoHelper()
	ref, err := name.ParseReference(fmt.Sprintf("127.0.0.1:%d/yard/%s/%s:%s", machine.options.HTTPPort, pier, repository, tag), name.Insecure)
	Expect(err).NotTo(HaveOccurred())
	return ref
}

// image returns a new image. It has the layers of another one, if there is one.
func image(with v1.Image) v1.Image {
	GinkgoHelper()
	made, err := random.Image(4<<10, 1)
	Expect(err).NotTo(HaveOccurred())
	if with == nil {
		return made
	}
	layers, err := made.Layers()
	Expect(err).NotTo(HaveOccurred())
	made, err = mutate.AppendLayers(with, layers...)
	Expect(err).NotTo(HaveOccurred())
	return made
}

// fill pushes an image, and gives it many tags with a prefix.
func (d docker) fill(repository, prefix string, count int) v1.Image {
	GinkgoHelper()
	all, err := remote.NewPusher(d.options...)
	Expect(err).NotTo(HaveOccurred())
	pushed := image(nil)
	for n := range count {
		Expect(all.Push(context.Background(), d.at(repository, fmt.Sprintf("%s-%d", prefix, n)), pushed)).To(Succeed())
	}
	return pushed
}

// expectWhole expects that an image can be pulled, with everything that belongs to it.
func (d docker) expectWhole(ref name.Reference, image v1.Hash) {
	GinkgoHelper()
	pulled, err := remote.Image(ref, d.options...)
	Expect(err).NotTo(HaveOccurred(), ref.String())
	Expect(validate.Image(pulled)).To(Succeed(), ref.String())
	Expect(pulled.Digest()).To(Equal(image), ref.String())
}

// loader is a client that pushes one image after another to a repository. All of its images share a layer, also with those of other loaders.
type loader struct {
	docker
	name, repository string
	base             v1.Image
	accepted         map[name.Reference]v1.Hash
	asked            int
}

func newLoader(d docker, who, repository string, base v1.Image) *loader {
	return &loader{docker: d, name: who, repository: repository, base: base, accepted: map[name.Reference]v1.Hash{}}
}

func (l *loader) String() string { return "loader " + l.name }

func (l *loader) use() error {
	pushed := image(l.base)
	ref := l.at(l.repository, fmt.Sprintf("new-%s-%d", l.name, l.asked))
	l.asked++
	if err := remote.Write(ref, pushed, l.options...); err != nil {
		return err
	}
	d, err := pushed.Digest()
	if err == nil {
		l.accepted[ref] = d
	}
	return err
}

// wear makes all content of the registry older than the grace period, as if no client had needed it for long. The registry must not be in
// use.
func wear() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	db, err := database.Open(ctx, filepath.Join(machine.options.Data, "activity.db"), record.Migrations())
	Expect(err).NotTo(HaveOccurred())
	Expect(db.Write(ctx, "ageing images", func(ctx context.Context, db bun.IDB) error {
		_, err := db.ExecContext(ctx, "DELETE FROM container_blobs")
		return err
	})).To(Succeed())
	Expect(db.Close()).To(Succeed())
	registrytest.Age(GinkgoTB(), imagesDirectory(), unused)
}

// imagesDirectory is the directory of the images.
func imagesDirectory() string { return filepath.Join(machine.options.Data, "registry") }

// collectArgs are the arguments of a garbage collection.
func collectArgs() []string {
	return []string{"registry", "gc", "--registry-collect-grace=1h",
		"--activity-database=" + filepath.Join(machine.options.Data, "activity.db"), "--registry-storage=" + imagesDirectory()}
}

// startCollection starts a garbage collection in a process of its own.
func startCollection() *process.Process {
	GinkgoHelper()
	p, err := process.Start(process.Program{
		Name: "collection", Path: checkout.Program("forgeplane"), Args: collectArgs(), Dir: machine.options.Data,
		Log: filepath.Join(machine.options.Logs, "collection.log"), Grace: patience.Wait,
	})
	Expect(err).NotTo(HaveOccurred())
	return p
}

// repository is a repository in the answers of the REST API.
type repository struct {
	ID     int64
	Name   string
	Status *string
}

// repositories returns the repositories of the project.
func repositories(api rest.Client) map[string]repository {
	GinkgoHelper()
	all := map[string]repository{}
	for _, r := range rest.Must[[]repository](api, http.StatusOK, "GET /projects/yard%2F"+pier+"/registry/repositories?per_page=100", "") {
		all[r.Name] = r
	}
	return all
}

// ruin is a repository that loses tags.
type ruin struct {
	// repository and tags are the name of the repository and the directory of its tags; prefix begins the tags to lose, and count is their number.
	repository, tags, prefix string
	count                    int
}

// newRuin returns the repository that has tags with a prefix. No other repository has such tags.
func newRuin(repository, prefix string, count int) ruin {
	GinkgoHelper()
	places := filepath.Join(imagesDirectory(), "docker", "registry", "v2", "repositories", "*", "*", "_manifests", "tags")
	found, err := filepath.Glob(filepath.Join(places, prefix+"-0"))
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(HaveLen(1))
	return ruin{repository, filepath.Dir(found[0]), prefix, count}
}

// left returns how many of the tags to lose are left.
func (r ruin) left() (n int) {
	all, _ := os.ReadDir(r.tags) // a deleted repository has no directory
	for _, tag := range all {
		if strings.HasPrefix(tag.Name(), r.prefix) {
			n++
		}
	}
	return n
}

// cut reports whether some of the tags are lost, and others are not.
func (r ruin) cut() bool { return 0 < r.left() && r.left() < r.count }

// hulk is a round's work: a repository with worn tags to clean up, and one to delete.
type hulk struct {
	docker
	api rest.Client
	// full and doomed are the repositories, and worn is the image of the tags to delete.
	full, doomed ruin
	worn         v1.Image
	cleanup      *v1alpha1.RegistryCleanup
	// accepted are the images that clients have pushed and that must stay.
	accepted map[name.Reference]v1.Hash
}

// newHulk pushes what is removed later, and an image that stays.
func newHulk(d docker, api rest.Client, round int) *hulk {
	GinkgoHelper()
	h := &hulk{docker: d, api: api, accepted: map[name.Reference]v1.Hash{}}
	toClean, toDelete := fmt.Sprintf("full-%d", round), fmt.Sprintf("doomed-%d", round)
	h.cleanup = forge.RegistryCleanup(toClean).Of(project(pier, "").Build()).In(toClean).Names("worn-.*", "").Build()
	h.worn = d.fill(toClean, "worn", worn)
	digest, err := d.fill(toClean, "dear", 1).Digest()
	Expect(err).NotTo(HaveOccurred())
	h.accepted[d.at(toClean, "dear-0")] = digest
	d.fill(toDelete, "lost", doomed)
	h.full, h.doomed = newRuin(toClean, "worn", worn), newRuin(toDelete, "lost", doomed)
	return h
}

// begin begins the removal.
func (h *hulk) begin() {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	Expect(api.Create(ctx, h.cleanup)).To(Succeed())
	rest.Must[int](h.api, http.StatusAccepted, fmt.Sprintf("DELETE /projects/yard%%2F%s/registry/repositories/%d", pier, repositories(h.api)[h.doomed.repository].ID), "")
}

// run returns the run of the cleanup, or nil before it has begun.
func (h *hulk) run() *v1alpha1.RegistryCleanupRun {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(h.cleanup), h.cleanup)).To(Succeed())
	return h.cleanup.Status.LastRun
}

// settle waits until nothing is left to do, and expects that exactly the worn tags are gone.
func (h *hulk) settle() {
	GinkgoHelper()
	Eventually(func() bool {
		run := h.run()
		return run != nil && run.Ended()
	}).WithPolling(polling).Should(BeTrue(), func() string { return fmt.Sprint(h.cleanup.Status) })
	run := h.cleanup.Status.LastRun
	Expect(run).To(HaveField("State", v1alpha1.RegistryCleanupFinished), h.cleanup.Status.LastError)
	Expect([]int64{run.Selected, run.Deleted, run.Failed}).To(Equal([]int64{worn, worn, 0}))
	Eventually(func() map[string]repository { return repositories(h.api) }).WithPolling(polling).ShouldNot(HaveKey(h.doomed.repository))
	left, err := remote.List(h.at(h.full.repository, "any").Context(), h.options...)
	Expect(err).NotTo(HaveOccurred())
	Expect(left).NotTo(ContainElement(HavePrefix("worn-")))
	h.expectKept()
}

// expectKept expects that every image that must stay can be pulled.
func (h *hulk) expectKept() {
	GinkgoHelper()
	for ref, digest := range h.accepted {
		h.expectWhole(ref, digest)
	}
}

// expectCollected expects that nothing of the worn image takes up space.
func (h *hulk) expectCollected() {
	GinkgoHelper()
	layers, err := h.worn.Layers()
	Expect(err).NotTo(HaveOccurred())
	digest, err := layers[0].Digest()
	Expect(err).NotTo(HaveOccurred())
	for _, d := range []v1.Hash{must(h.worn.Digest()), must(h.worn.ConfigName()), digest} {
		Expect(filepath.Glob(filepath.Join(imagesDirectory(), "docker", "registry", "v2", "blobs", "sha256", "*", d.Hex))).To(BeEmpty())
	}
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// A round cleans up a repository with many tags, deletes another one, and collects what earlier rounds have left, while clients push. The
// collection is killed at a random moment, and the server when a random number of tags is gone: those of the cleanup in odd rounds, and those of the
// deletion in even ones.
var _ = Describe("Forgeplane, killed in the middle of the removal of images", Ordered, func() {
	var chance *rand.Rand
	var d docker
	var max rest.Client
	var base v1.Image
	var whole time.Duration // the duration of a round without interruptions
	var hulks []*hulk
	hit := map[string]int{}
	rounds := (rounds + 1) / 2 // they take longer than those of other specs

	BeforeAll(func() {
		seed := uint64(GinkgoRandomSeed()) //nolint:gosec // any number can be a seed
		chance = rand.New(rand.NewPCG(seed, seed))
		machine.shard("quay")
		create(project(pier, "quay"))
		admin.Apply(maxWithImages)
		admin.WaitReady("accesstoken/max-images")
		DeferCleanup(func() { admin.DoWith(maxWithImages, "kubectl", "delete", "--filename=-") })
		expectReady(pier)
		DeferCleanup(func() {
			expectRemoved(pier)
			admin.Kubectl("delete", "registrycleanups", "--all", "--namespace=yard")
		})
		d, max, base = newDocker(tokenOf("max-images")), rest.WithToken(machine.address(), tokenOf("max-images")), image(nil)
		first := newHulk(d, max, 0)
		begun := time.Now()
		first.begin()
		first.settle()
		whole, hulks = time.Since(begun), append(hulks, first)
	})

	// interrupt kills a collection at a random moment, and then reports whether that was in the middle.
	interrupt := func(collection *process.Process) (inTheMiddle <-chan bool) {
		moment, result := time.After(time.Duration(chance.Float64()*float64(whole))), make(chan bool, 1)
		go func() {
			defer GinkgoRecover()
			defer close(result)
			ended := false
			select {
			case <-collection.Done():
				ended = true
			case <-moment:
			}
			Expect(collection.Kill()).To(Succeed())
			result <- !ended
		}()
		return result
	}

	for round := 1; round <= rounds; round++ {
		It(fmt.Sprintf("removes what it was told to remove and nothing else, time %d of %d", round, rounds), func() {
			h := newHulk(d, max, round)
			hulks = append(hulks, h)
			watched := []ruin{h.doomed, h.full}[round%2]
			enough := chance.IntN(watched.count)
			loaders := []*loader{newLoader(d, "one", h.full.repository, base), newLoader(d, "two", h.full.repository, base)}
			crowd := work(loaders)
			collection := interrupt(startCollection())
			h.begin()
			Eventually(watched.left).WithPolling(time.Millisecond).Should(BeNumerically("<=", enough))
			machine.kill()
			state := []string{}
			if h.full.cut() {
				state = append(state, "a cleanup")
			}
			if h.doomed.cut() {
				state = append(state, "a deletion")
			}
			cut := crowd.join()
			if <-collection {
				state = append(state, "a collection")
			}
			for _, what := range state {
				hit[what]++
			}
			hit["a push"] += len(cut)
			wear()
			machine.start()
			pushed := 0
			for _, l := range loaders {
				maps.Copy(h.accepted, l.accepted)
				pushed += len(l.accepted)
			}
			h.settle()
			AddReportEntry(fmt.Sprintf("killed when %d tags of %s were left, in the middle of %q and %d pushes; %d images were pushed", enough, watched.repository,
				state, len(cut), pushed), ReportEntryVisibilityAlways)
		})
	}

	It("leaves nothing that a garbage collection does not find", func() {
		machine.stop()
		wear()
		said := admin.Do(checkout.Program("forgeplane"), collectArgs()...)
		AddReportEntry(said, ReportEntryVisibilityAlways)
		machine.start()
		for _, h := range hulks {
			h.expectKept()
			h.expectCollected()
		}
	})

	AfterAll(func() { reportHits(hit, "a collection", "a cleanup", "a push", "a deletion") })
})
