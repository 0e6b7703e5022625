package replicas

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/soak"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// uses is the number of objects that are created and used at once.
var uses = soak.Times(4, 60)

// fileIn returns the request that creates a file in a project, and fileBody is its body.
func fileIn(project int64) string {
	return fmt.Sprintf("POST /projects/%d/repository/files/README.md", project)
}

const fileBody = `{"branch":"main","content":"Hello.\n","commit_message":"Begin"}`

var _ = Describe("An object that a client has created", Ordered, func() {
	var first rest.Client

	BeforeAll(func() {
		start(manager, one, two)
		first = one.by("root")
	})

	// hold stops the manager until the returned function is called.
	hold := func() (release func()) {
		GinkgoHelper()
		Expect(syscall.Kill(manager.process.PID(), syscall.SIGSTOP)).To(Succeed())
		release = sync.OnceFunc(func() {
			GinkgoHelper()
			Expect(syscall.Kill(manager.process.PID(), syscall.SIGCONT)).To(Succeed())
		})
		DeferCleanup(release)
		return release
	}

	DescribeTable("delays its users while the controllers are slow",
		func(name string, use func(project project) error) {
			release := hold()
			made := rest.Must[project](first, http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"slow-%s"}`, name))
			ended := make(chan error, 1)
			go func() {
				defer GinkgoRecover()
				ended <- use(made)
			}()
			Consistently(ended).WithTimeout(quiet).WithPolling(polling).ShouldNot(Receive())
			release()
			Eventually(ended).Should(Receive(Succeed()))
		},
		Entry("a file", "file", func(p project) error {
			return expect(first, http.StatusCreated, fileIn(p.ID), fileBody)
		}),
		Entry("a clone", "clone", func(p project) error {
			_, err := admin.As("root", token("root")).Try("git", "clone", "--quiet", one.address()+"/"+p.Path+".git", admin.Space())
			return err
		}),
		Entry("a push", "push", func(p project) error {
			_, err := newHistory().Try("git", "push", "--quiet", one.address()+"/"+p.Path+".git", "HEAD:main")
			return err
		}),
		Entry("a protection of its default branch", "protection", func(p project) error {
			return expect(first, http.StatusCreated, fmt.Sprintf("POST /projects/%d/protected_branches", p.ID), `{"name":"main"}`)
		}),
		Entry("a protection of its default branch, through kube-apiserver", "protection-of-kubernetes", func(p project) error {
			return expect(door, http.StatusCreated, fmt.Sprintf("POST /projects/%d/protected_branches", p.ID), `{"name":"main"}`)
		}),
	)

	It("can be used at once for a file, a clone and a push, at the server that created it", func() {
		history := newHistory()
		var took []time.Duration
		for n := range uses {
			made := rest.Must[project](first, http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"at-once-%d"}`, n))
			begun := time.Now()
			switch n % 3 {
			case 0:
				rest.Must[struct{}](first, http.StatusCreated, fileIn(made.ID), fileBody)
			case 1:
				admin.As("root", token("root")).Clone(one.address() + "/" + made.Path + ".git")
			default:
				history.Git("push", "--quiet", one.address()+"/"+made.Path+".git", "HEAD:main")
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		report("the first use of a project takes, median,", took[len(took)/2])
		report("the first use of a project takes, at worst,", took[len(took)-1])
	})

	It("can be used at once at another server, however late that is informed", func() {
		const behind = 150 * time.Millisecond
		two.wire.stretch(behind)
		second := two.by("root")
		var took []time.Duration
		used := func(c rest.Client, status int, request, body string) {
			GinkgoHelper()
			begun := time.Now()
			Expect(expect(c, status, request, body)).To(Succeed())
			took = append(took, time.Since(begun))
		}
		for n := range uses / 4 {
			user := rest.Must[record](first, http.StatusCreated, "POST /users",
				fmt.Sprintf(`{"username":"far-%d","name":"Far","email":"far-%[1]d@example.com"}`, n))
			used(second, http.StatusOK, fmt.Sprintf("GET /users/%d", user.ID), "")
			secret := rest.Must[struct{ Token string }](first, http.StatusCreated,
				fmt.Sprintf("POST /users/%d/personal_access_tokens", user.ID), `{"name":"Made just now","scopes":["api"]}`).Token
			far := rest.WithToken(two.address(), secret)
			used(far, http.StatusOK, "GET /user", "")
			group := rest.Must[record](first, http.StatusCreated, "POST /groups", fmt.Sprintf(`{"path":"far-%d-s","name":"Far"}`, n))
			used(second, http.StatusOK, fmt.Sprintf("GET /groups/far-%d-s", n), "")
			made := rest.Must[project](first, http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"app","namespace_id":%d}`, group.ID))
			used(second, http.StatusCreated, fileIn(made.ID), fileBody)
			member := fmt.Sprintf(`{"user_id":%d,"access_level":30}`, user.ID)
			used(far, http.StatusNotFound, fmt.Sprintf("GET /projects/%d", made.ID), "")
			rest.Must[struct{}](first, http.StatusCreated, fmt.Sprintf("POST /projects/%d/members", made.ID), member)
			used(far, http.StatusOK, fmt.Sprintf("GET /projects/%d", made.ID), "")
			rest.Must[struct{}](first, http.StatusOK, fmt.Sprintf("PUT /projects/%d/members/%d", made.ID, user.ID), `{"access_level":40}`)
			used(far, http.StatusCreated, fmt.Sprintf("POST /projects/%d/labels", made.ID), `{"name":"bug","color":"#FF0000"}`)
			rest.Must[struct{}](first, http.StatusCreated, fmt.Sprintf("POST /projects/%d/protected_branches", made.ID), `{"name":"held"}`)
			used(far, http.StatusOK, fmt.Sprintf("GET /projects/%d/protected_branches/held", made.ID), "")
			rest.Must[struct{}](first, http.StatusNoContent, fmt.Sprintf("DELETE /projects/%d/protected_branches/held", made.ID), "")
			used(far, http.StatusCreated, fmt.Sprintf("POST /projects/%d/protected_branches", made.ID), `{"name":"held"}`)

			clone := admin.As(fmt.Sprintf("far-%d", n), secret).Clone(two.address() + "/" + made.Path + ".git")
			clone.Commit("README.md", "Hello again.\n")
			clone.MustPush("main")
			other := rest.Must[project](first, http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"cloned","namespace_id":%d}`, group.ID))
			admin.As("root", token("root")).Clone(two.address() + "/" + other.Path + ".git")
		}
		slices.Sort(took)
		report(fmt.Sprintf("at a server that is %s behind, the next request takes, median,", behind), took[len(took)/2])
		report(fmt.Sprintf("at a server that is %s behind, the next request takes, at worst,", behind), took[len(took)-1])
	})

	It("causes no delay if it does not exist and nothing was written", func() {
		var took []time.Duration
		second := two.by("root")
		for range 200 {
			begun := time.Now()
			Expect(second.Status("GET /projects/no%2Fsuch")).To(Equal(http.StatusNotFound))
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		report("a 404 takes, median,", took[len(took)/2])
	})
})

// newHistory returns a repository with a commit that is not pushed yet.
func newHistory() terminal.Terminal {
	GinkgoHelper()
	t := admin.As("root", token("root")).In(admin.Space())
	t.Git("init", "--quiet", "--initial-branch=main")
	t.Commit("README.md", "Hello.\n")
	return t
}

// project are the fields of a project that the specs need.
type project struct {
	ID   int64  `json:"id"`
	Path string `json:"path_with_namespace"`
}

// expect sends a request that must be answered with a status code, and returns an error with any other answer.
func expect(c rest.Client, status int, request, body string) error {
	a, err := c.Try(request, body)
	if err == nil && a.Status != status {
		err = fmt.Errorf("%s: %s", request, a)
	}
	return err
}
