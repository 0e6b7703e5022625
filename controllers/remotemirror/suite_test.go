package remotemirror_test

import (
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/test/forge"
	"github.com/forgeplane/forgeplane/test/suite"
)

var (
	cluster *forge.Cluster
	f       *forge.Forge
	// acme is a group of a team, website is a project in it, and worker is a client that works on the project.
	acme    *v1alpha1.Group
	website *v1alpha1.Project
	worker  *gittest.Client
	there   *target
)

func TestRemoteMirror(t *testing.T) {
	suite.Run(t, "RemoteMirror")
}

var (
	_ = BeforeSuite(func() { cluster = forge.StartCluster() })
	_ = BeforeEach(func() {
		f = forge.New(cluster, forge.Options{})
		f.NewStorage("shard")
		acme = forge.Group("acme").In(f.NewNamespace()).Build()
		website = forge.Project("website").In(acme).Build()
		f.Create(acme, website)
		f.ExpectReady(acme, website)
		worker = gittest.New(GinkgoTB(), "sha1")
		there = newTarget()
	})
)

// push pushes to the website without checking protections, and makes its controller observe the push.
func push(args ...string) {
	GinkgoHelper()
	r, err := f.Repositories.Of(GinkgoT().Context(), website)
	Expect(err).NotTo(HaveOccurred())
	f.Refresh(website)
	before := website.Status.RefsChecksum
	worker.Git(GinkgoTB(), append([]string{"push", "--quiet", r.Dir()}, args...)...)
	f.Change(website, func() { metav1.SetMetaDataAnnotation(&website.ObjectMeta, "test/push", time.Now().String()) })
	f.Eventually(website).Should(HaveField("Status.RefsChecksum", Not(Equal(before))))
}

// commit makes a commit and returns it.
func commit(content string) string {
	GinkgoHelper()
	return worker.Commit(GinkgoTB(), "README", content)
}

// target is another server, with an empty repository.
type target struct {
	*httptest.Server
	git *gittest.Client
	// asked counts the requests for refs, and posted counts the pushes.
	asked, posted atomic.Int32
	// down makes every request fail, hold delays pushes until release, and drip answers pushes without ever finishing.
	down, hold, drip atomic.Bool
	holding          atomic.Int32
	held             chan struct{}
	release          func()
}

const (
	username = "mirror"
	password = "correct-horse"
)

func newTarget() *target {
	GinkgoHelper()
	root := GinkgoT().TempDir()
	t := &target{git: &gittest.Client{Dir: filepath.Join(root, "t.git")}, held: make(chan struct{})}
	t.release = sync.OnceFunc(func() { close(t.held) })
	(&gittest.Client{Dir: root}).Git(GinkgoTB(), "init", "--quiet", "--bare", "--initial-branch=main", "t.git")
	git, err := exec.LookPath("git")
	Expect(err).NotTo(HaveOccurred())
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + username},
	}
	t.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		switch {
		case t.down.Load():
			t.asked.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case strings.HasPrefix(r.URL.Path, "/private/") && (user != username || given != password):
			t.asked.Add(1)
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		case r.Method == http.MethodGet:
			t.asked.Add(1)
		case r.Method == http.MethodPost:
			t.posted.Add(1)
			if t.drip.Load() {
				_, _ = io.Copy(io.Discard, r.Body)
				dripAnswer(w, r)
				return
			}
			if t.hold.Load() {
				_, _ = io.Copy(io.Discard, r.Body)
				t.holding.Add(1)
				select {
				case <-t.held:
				case <-r.Context().Done():
				}
				t.holding.Add(-1)
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/private")
		backend.ServeHTTP(w, r)
	}))
	DeferCleanup(t.Close)
	DeferCleanup(t.release)
	return t
}

// dripAnswer sends progress messages until the client disconnects.
func dripAnswer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			_, _ = io.WriteString(w, "0006\x02.")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			tick.Stop()
			return
		}
	}
}

func (t *target) url() string        { return t.URL + "/t.git" }
func (t *target) privateURL() string { return t.URL + "/private/t.git" }

// refs returns the refs of the target, as name and object.
func (t *target) refs() map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for line := range strings.Lines(t.git.Git(GinkgoTB(), "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, object, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = object
	}
	return all
}

// hook makes the target run a script for each ref that is about to change.
func (t *target) hook(script string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(t.git.Dir, "hooks", "update"), []byte("#!/bin/sh\n"+script+"\n"), 0o755)).To(Succeed())
}

// secret returns a Secret that may be sent to a URL.
func secret(name, url string, data map[string]string) *corev1.Secret {
	GinkgoHelper()
	host, err := credential.Origin(url)
	Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: website.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfRemoteMirror},
		Annotations: map[string]string{v1alpha1.AnnotationHost: host},
	}, StringData: data}
}
