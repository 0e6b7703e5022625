package replicas

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
)

// newImage returns an image with random layers.
func newImage() v1.Image {
	GinkgoHelper()
	image, err := random.Image(64<<10, 3)
	Expect(err).NotTo(HaveOccurred())
	return image
}

// image returns the name of an image at a registry.
func (r *replica) image(text string) name.Reference {
	GinkgoHelper()
	ref, err := name.ParseReference(fmt.Sprintf("127.0.0.1:%d/%s", r.options.HTTPPort, text), name.Insecure)
	Expect(err).NotTo(HaveOccurred())
	return ref
}

// as signs in to a registry as a user. It tries a request once.
func as(username string) []remote.Option {
	GinkgoHelper()
	return []remote.Option{
		remote.WithAuth(&authn.Basic{Username: username, Password: token(username)}), remote.WithRetryPredicate(func(error) bool { return false }), remote.WithJobs(1),
	}
}

// turns sends each request for a registry to another process in turn.
type turns struct {
	processes []*replica
	sent      int
	// patched are the processes that received the content of uploads, by path, and moved counts the uploads that another one finished.
	patched map[string]*replica
	moved   int
}

// RoundTrip implements http.RoundTripper.
func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/v2/") {
		return http.DefaultTransport.RoundTrip(r) // the server that issues tokens
	}
	to := t.processes[t.sent%len(t.processes)]
	t.sent++
	switch before := t.patched[r.URL.Path]; {
	case r.Method == http.MethodPatch:
		t.patched[r.URL.Path] = to
	case r.Method == http.MethodPut && before != nil && before != to:
		t.moved++
	}
	forwarded := r.Clone(r.Context())
	forwarded.URL.Host = fmt.Sprintf("127.0.0.1:%d", to.options.HTTPPort)
	response, err := http.DefaultTransport.RoundTrip(forwarded)
	if err == nil { // each process has an address of its own here
		response.Header.Set("Location", strings.Replace(response.Header.Get("Location"), forwarded.URL.Host, r.URL.Host, 1))
	}
	return response, err
}

var _ = Describe("A container registry in processes of its own", Ordered, func() {
	BeforeAll(func() { start(manager, one, two, images, copies) })

	It("serves a project that was created just now, however late it is informed", func() {
		const behind = 150 * time.Millisecond
		images.wire.stretch(behind)
		var took []time.Duration
		for n := range uses / 4 {
			made := rest.Must[project](one.by("root"), http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"images-%d"}`, n))
			begun := time.Now()
			pushed := newImage()
			Expect(remote.Write(images.image(made.Path+"/app:1"), pushed, as("root")...)).To(Succeed())
			took = append(took, time.Since(begun))
			pulled, err := remote.Image(copies.image(made.Path+"/app:1"), as("root")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(validate.Image(pulled)).To(Succeed())
			Expect(pulled.Digest()).To(Equal(must(pushed.Digest())))
			tags, err := remote.List(images.image(made.Path+"/app").Context(), as("root")...)
			Expect(err).NotTo(HaveOccurred())
			Expect(tags).To(Equal([]string{"1"}))
			repositories := rest.Must[[]struct{ Location string }](two.by("root"), http.StatusOK, fmt.Sprintf("GET /projects/%d/registry/repositories", made.ID), "")
			Expect(repositories).To(HaveExactElements(HaveField("Location", images.image(made.Path+"/app").Context().Name())))
		}
		report("the first push takes, at first,", took[0])
		report("the first push takes, at last,", took[len(took)-1])
	})

	It("is where the servers say", func() {
		response, err := http.Get(one.address() + "/v2/")
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		Expect(response).To(HaveHTTPStatus(http.StatusNotFound))
		Expect(response).To(HaveHTTPBody(ContainSubstring("the container registry is at " + images.address())))
	})

	It("stores an image whose every request meets another process, as behind a load balancer", func() {
		made := rest.Must[project](one.by("root"), http.StatusCreated, "POST /projects", `{"path":"images-of-balancer"}`)
		pushed, turns := newImage(), &turns{processes: []*replica{images, copies}, patched: map[string]*replica{}}
		Expect(remote.Write(images.image(made.Path+":1"), pushed, append(as("root"), remote.WithTransport(turns))...)).To(Succeed())
		Expect(turns.moved).To(BeNumerically(">=", 3), "uploads of layers that one process began and the other one finished")
		pulled, err := remote.Image(copies.image(made.Path+":1"), as("root")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(validate.Image(pulled)).To(Succeed())
		Expect(pulled.Digest()).To(Equal(must(pushed.Digest())))
	})

	It("leaves a push that a killed process has begun to another process", func() {
		made := rest.Must[project](one.by("root"), http.StatusCreated, "POST /projects", `{"path":"images-of-killed"}`)
		pushed := newImage()
		layers, err := pushed.Layers()
		Expect(err).NotTo(HaveOccurred())
		Expect(remote.WriteLayer(images.image(made.Path).Context(), layers[0], as("root")...)).To(Succeed())
		images.kill()
		Expect(remote.Write(images.image(made.Path+":1"), pushed, as("root")...)).NotTo(Succeed())
		Expect(remote.Write(copies.image(made.Path+":1"), pushed, as("root")...)).To(Succeed())
		start(images)
		pulled, err := remote.Image(images.image(made.Path+":1"), as("root")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(validate.Image(pulled)).To(Succeed())
	})

	It("cleans up a repository once an hour, whichever server is asked", func() {
		rounds := soak.Times(2, 10)
		made := rest.Must[project](one.by("root"), http.StatusCreated, "POST /projects", `{"path":"images-to-clean"}`)
		for n := range rounds {
			at := fmt.Sprintf("%s/app%d", made.Path, n)
			pushed := newImage()
			for _, tag := range []string{"old", "new"} {
				Expect(remote.Write(images.image(at+":"+tag), pushed, as("root")...)).To(Succeed())
			}
			var id int64
			for _, r := range rest.Must[[]struct {
				ID   int64
				Path string
			}](one.by("root"), http.StatusOK, fmt.Sprintf("GET /projects/%d/registry/repositories?per_page=100", made.ID), "") {
				if strings.HasSuffix(r.Path, at) {
					id = r.ID
				}
			}
			answers := make([]rest.Answer, 4)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					defer GinkgoRecover()
					answers[i] = []*replica{one, two}[i%2].by("root").Call(fmt.Sprintf("DELETE /projects/%d/registry/repositories/%d/tags?name_regex_delete=old", made.ID, id), "")
				})
			}
			all.Wait()
			slices.SortFunc(answers, func(a, b rest.Answer) int { return a.Status - b.Status })
			Expect(answers[0].Status).To(Equal(http.StatusAccepted), fmt.Sprint(answers))
			for _, refused := range answers[1:] {
				Expect(refused.Status).To(Equal(http.StatusBadRequest), fmt.Sprint(answers))
				Expect(refused.Body).To(ContainSubstring("at most once an hour"))
			}
			Eventually(func() ([]string, error) {
				return remote.List(images.image(at+":any").Context(), as("root")...)
			}).WithPolling(polling).Should(Equal([]string{"new"}))
		}
	})

	It("does what the flags of its process say", func() {
		made := rest.Must[project](one.by("root"), http.StatusCreated, "POST /projects", `{"path":"images-of-flags"}`)
		Expect(remote.Write(copies.image(made.Path+":1"), newImage(), as("root")...)).To(Succeed())
		large, err := random.Image(1<<20, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(remote.Write(copies.image(made.Path+":2"), large, as("root")...)).To(MatchError(ContainSubstring("limit of 1Mi bytes")))
		Expect(remote.Write(images.image(made.Path+":2"), large, as("root")...)).To(Succeed())
		Expect(remote.Delete(copies.image(made.Path+":1"), as("root")...)).To(MatchError(ContainSubstring("delete the image by its digest")))
		Expect(remote.Delete(images.image(made.Path+":1"), as("root")...)).To(Succeed())

		request, err := http.NewRequest(http.MethodGet, one.address()+"/jwt/auth?service=container_registry", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		request.SetBasicAuth("root", token("root"))
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		Expect(response).To(HaveHTTPBody(ContainSubstring(`"expires_in":7200`)))
	})

	It("can be collected by a command", func() {
		text := admin.Do(checkout.Program("forgeplane"), "registry", "gc", "--registry-collect-grace=1h",
			"--activity-database="+images.options.Activity, "--registry-storage="+filepath.Join(filepath.Dir(images.options.Activity), "registry"))
		Expect(text).To(ContainSubstring("Removed 0 deleted repositories, 0 images, 0 blobs"))
		foreign := admin.Fail(checkout.Program("forgeplane"), "registry", "gc",
			"--activity-database="+filepath.Join(GinkgoT().TempDir(), "new.db"), "--registry-storage="+filepath.Join(filepath.Dir(images.options.Activity), "registry"))
		Expect(foreign).To(ContainSubstring("check that both belong together"))
	})
})

// must returns a value without an error.
func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}
