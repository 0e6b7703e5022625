package e2e

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/terminal"
)

var _ = Describe("An import", Ordered, func() {
	const password = "open-sesame-and-tell-nobody"
	var museum team
	var origin *elsewhere
	var head string

	BeforeAll(func() {
		credentials[password] = true
		museum = newTeam("museum")
		origin = newElsewhere("curator", password)
		head = origin.work.Commit("statue.txt", "Marble.\n")
		origin.work.Git("push", "--quiet", origin.repository, "HEAD:refs/heads/trunk", "HEAD:refs/tags/v1")
		museum.apply(`
apiVersion: v1
kind: Secret
metadata: {name: right, namespace: TEAM, labels: {forgeplane.dev/secret: import}, annotations: {forgeplane.dev/host: "` + origin.url + `"}}
stringData: {username: curator, password: ` + password + `}
---
apiVersion: v1
kind: Secret
metadata: {name: wrong, namespace: TEAM, labels: {forgeplane.dev/secret: import}, annotations: {forgeplane.dev/host: "` + origin.url + `"}}
stringData: {username: curator, password: ` + password + `-not}
`)
	})

	// declare declares a project that is imported with the credentials in a Secret.
	declare := func(name, secret string) {
		GinkgoHelper()
		museum.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: ` + name + `, namespace: TEAM}
spec: {path: ` + name + `, groupRef: {name: TEAM}, importURL: "` + origin.url + `", importSecretRef: {name: ` + secret + `}}
`)
	}

	It("copies branches and tags, and no process of it has the password in its arguments", func() {
		origin.hold()
		declare("loan", "right")
		Eventually(origin.asked).WithPolling(polling).Should(BeTrue())
		processes := strings.Join(checkout.Processes(), "\n")
		Expect(processes).To(ContainSubstring("git ls-remote"))
		expectNoCredential("a command line", processes)
		origin.release()
		museum.waitReady("project/loan")
		refs := museum.as("dana").Git("ls-remote", museum.url("loan"))
		Expect(refs).To(And(ContainSubstring(head+"\trefs/heads/trunk"), ContainSubstring(head+"\trefs/tags/v1")))
		Expect(museum.show("project/loan", "{.status.defaultBranch} {.status.headCommit}")).To(Equal("trunk " + head))
	})

	It("that the source refuses says so, without the credentials", func() {
		declare("refused", "wrong")
		museum.wait("project/refused", reason, "ImportFailed")
		message := museum.show("project/refused", "{.status.conditions[?(@.type==\"Ready\")].message}")
		Expect(message).To(ContainSubstring("does not accept the credentials"))
		expectNoCredential("the condition", message)
		museum.kubectl("delete", "project", "refused", "--timeout=30s")
	})
})

// elsewhere is a Git server of somebody else, with one repository that requires authentication.
type elsewhere struct {
	url        string
	repository string
	work       terminal.Terminal

	lock    sync.Mutex
	waiting chan struct{} // blocks requests, unless it is nil
	pending bool
}

func newElsewhere(username, password string) *elsewhere {
	GinkgoHelper()
	e := &elsewhere{work: admin.As(username, "")}
	root := e.work.Space()
	e.repository = filepath.Join(root, "origin.git")
	e.work.Git("init", "--quiet", "--bare", "--initial-branch=trunk", e.repository)
	e.work = e.work.Clone(e.repository)
	backend := &cgi.Handler{
		Path: filepath.Join(e.work.Git("--exec-path"), "git-http-backend"),
		Env:  append(e.work.Env, "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+username), Logger: nil, Stderr: GinkgoWriter,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, value, ok := r.BasicAuth(); !ok || name != username || value != password {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		e.wait()
		backend.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		e.release()
		server.Close()
	})
	e.url = server.URL + "/origin.git"
	return e
}

// hold makes requests wait until release.
func (e *elsewhere) hold() {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.waiting, e.pending = make(chan struct{}), false
}

// release lets waiting requests continue, if there are any.
func (e *elsewhere) release() {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.waiting != nil {
		close(e.waiting)
		e.waiting = nil
	}
}

// asked reports whether a request waits.
func (e *elsewhere) asked() bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	return e.pending
}

func (e *elsewhere) wait() {
	e.lock.Lock()
	waiting := e.waiting
	e.pending = waiting != nil
	e.lock.Unlock()
	if waiting != nil {
		<-waiting
	}
}
