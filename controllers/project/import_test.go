package project_test

import (
	"bytes"
	"crypto/rand"
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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/egress"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
	"github.com/forgeplane/forgeplane/test/forge"
)

const (
	importer = "importer"
	password = "correct-horse"
)

// origin is another server, with a repository whose default branch is trunk.
type origin struct {
	*httptest.Server
	root   string
	commit string
	// attempts counts the imports that have begun.
	attempts atomic.Int32
	// held delays the content of repositories below /held until release is called. waiting counts the waiting requests.
	held    chan struct{}
	release func()
	waiting atomic.Int32
}

func newOrigin() *origin {
	GinkgoHelper()
	o := &origin{root: GinkgoT().TempDir(), held: make(chan struct{})}
	o.release = sync.OnceFunc(func() { close(o.held) })
	c := gittest.New(GinkgoTB(), "sha1")
	c.Git(GinkgoTB(), "checkout", "--quiet", "-b", "trunk")
	o.commit = c.Commit(GinkgoTB(), "README", "hello")
	c.Git(GinkgoTB(), "branch", "topic")
	c.Git(GinkgoTB(), "tag", "v1")
	c.Git(GinkgoTB(), "clone", "--quiet", "--mirror", ".", filepath.Join(o.root, "tools.git"))
	binary, err := exec.LookPath("git")
	Expect(err).NotTo(HaveOccurred())
	backend := &cgi.Handler{Path: binary, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + o.root, "GIT_HTTP_EXPORT_ALL=1"}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			o.attempts.Add(1)
		}
		user, given, _ := r.BasicAuth()
		switch path, private := strings.CutPrefix(r.URL.Path, "/private"); {
		case private && (user != importer || given != password):
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		case strings.HasPrefix(path, "/slow/") && r.Method == http.MethodPost:
			asked, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(asked))
			if bytes.Contains(asked, []byte("command=fetch")) {
				dripPack(w, r)
				return
			}
		case strings.HasPrefix(path, "/held/") && r.Method == http.MethodPost:
			asked, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(asked))
			if bytes.Contains(asked, []byte("command=fetch")) {
				o.waiting.Add(1)
				<-o.held
			}
		}
		for _, prefix := range []string{"/private", "/held", "/slow"} {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, prefix)
		}
		backend.ServeHTTP(w, r)
	}))
	DeferCleanup(o.Close)
	DeferCleanup(o.release)
	return o
}

// dripPack sends the beginning of a pack, and then only keeps the connection open until the client disconnects.
func dripPack(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	_, _ = io.WriteString(w, "000dpackfile\n")
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			_, _ = io.WriteString(w, strings.Repeat("0005\x01", 10))
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			tick.Stop()
			return
		}
	}
}

// secret returns a Secret that may be sent to a URL.
func secret(name, url string, data map[string]string) *corev1.Secret {
	GinkgoHelper()
	host, err := credential.Origin(url)
	Expect(err).NotTo(HaveOccurred())
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfImport},
		Annotations: map[string]string{v1alpha1.AnnotationHost: host},
	}, StringData: data}
}

// imported expects that a project is a copy of the origin.
func (o *origin) imported(p *v1alpha1.Project) {
	GinkgoHelper()
	f.ExpectReady(p)
	var names []string
	for ref, err := range refs.List(GinkgoT().Context(), repositoryOf(p), "refs/") {
		Expect(err).NotTo(HaveOccurred())
		names = append(names, ref.Name)
	}
	Expect(names).To(Equal([]string{"refs/heads/topic", "refs/heads/trunk", "refs/tags/v1"}))
	Expect(upkeep.Fsck(GinkgoT().Context(), repositoryOf(p), true)).To(Succeed())
	Expect(p.Status.HeadCommit).To(Equal(o.commit))
}

var _ = Describe("An imported project", func() {
	var o *origin
	BeforeEach(func() { o = newOrigin() })

	It("is a copy, with the default branch of the original, which is protected", func() {
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/tools.git").Build()
		f.Create(tools)
		o.imported(tools)
		Expect(tools.Status.DefaultBranch).To(Equal("trunk"))
		Expect(tools.Status.ProtectedDefaultBranch).To(Equal("trunk"))
		Expect(protections()).To(ConsistOf(HaveField("Spec.Branch", "trunk")))
		before := o.attempts.Load()
		f.ExpectRestartWritesNothing()
		Expect(o.attempts.Load()).To(Equal(before), "it is imported once")
	})

	It("has the default branch that it declares", func() {
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/tools.git").DefaultBranch("topic").Build()
		f.Create(tools)
		o.imported(tools)
		Expect(tools.Status.DefaultBranch).To(Equal("topic"))
		Expect(protections()).To(ConsistOf(HaveField("Spec.Branch", "topic")))
	})

	It("can be imported from a directory in development mode", func() {
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom("file://" + o.root + "/tools.git").Build()
		f.Create(tools)
		o.imported(tools)
	})

	It("cannot be imported from a directory otherwise, and says what to do", func() {
		f = forge.New(cluster, forge.Options{})
		tools := forge.Project("tools").In(acme).ImportedFrom("file://" + o.root + "/tools.git").Build()
		f.Create(tools)
		f.ExpectStalled(tools, v1alpha1.ReasonInvalid, "importURL: file URLs are for development only: use http or https")
	})

	It("cannot be imported from a private network, unless the operator allows it", func() {
		f = forge.New(cluster, forge.Options{AllowTargets: []string{}})
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/tools.git").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImportFailed, "requests to localhost are not allowed")
		Expect(o.attempts.Load()).To(BeZero())
	})

	It("is imported with the credentials of a Secret", func() {
		f.Run()
		f.Create(secret("origin", o.URL, map[string]string{"username": importer, "password": password}))
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/private/tools.git").ImportSecret("origin").Build()
		f.Create(tools)
		o.imported(tools)
		config, err := os.ReadFile(filepath.Join(repositoryOf(tools).Dir(), "config"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(config)).NotTo(ContainSubstring(password))
	})

	It("says what is wrong with the Secret, and continues when the Secret is corrected", func() {
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/private/tools.git").ImportSecret("origin").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonReferenceNotFound, "importSecretRef: there is no Secret origin")
		elsewhere := secret("origin", o.URL, map[string]string{"username": importer, "password": password})
		elsewhere.Namespace = f.NewNamespace()
		f.Create(elsewhere)
		f.ExpectWaiting(tools, v1alpha1.ReasonReferenceNotFound, "kubectl label secret origin --namespace "+tools.Namespace+" forgeplane.dev/secret=import")
		s := secret("origin", "https://git.example.com", map[string]string{"username": importer})
		f.Create(s)
		f.ExpectWaiting(tools, v1alpha1.ReasonReferenceNotAllowed, "importSecretRef: Secret origin is for another host", "forgeplane.dev/host="+o.URL)
		f.Change(s, func() { s.Annotations[v1alpha1.AnnotationHost] = o.URL })
		f.ExpectWaiting(tools, v1alpha1.ReasonInvalid, "importSecretRef: Secret origin has no key password")
		f.Change(s, func() { s.StringData = map[string]string{"password": password} })
		f.Run()
		look(tools)
		o.imported(tools)
	})

	It("stops when its source is too slow, says so, and tries again", func() {
		f = forge.New(cluster, forge.Options{Egress: egress.Limits{Patience: time.Second, Throughput: 64 << 10}})
		f.Run()
		slow := forge.Project("slow").In(acme).ImportedFrom(o.URL + "/slow/tools.git").Build()
		f.Create(slow)
		f.ExpectWaiting(slow, v1alpha1.ReasonImportFailed, "importing "+o.URL+"/slow/tools.git: "+
			"127.0.0.1 is too slow: after the first 1s the server requires at least 64 KiB per second on average (Forgeplane tries again)")
		Expect(repositoryOf(slow).Check()).To(MatchError(git.ErrNotFound))
	})

	It("says which limit it exceeds, leaves nothing behind, and tries again a day later", func() {
		f = forge.New(cluster, forge.Options{Limits: git.Limits{Import: 1 << 20}})
		f.Run()
		c := gittest.New(GinkgoTB(), "sha1")
		noise := make([]byte, 4<<20)
		_, _ = rand.Read(noise)
		c.Commit(GinkgoTB(), "noise", string(noise))
		c.Git(GinkgoTB(), "clone", "--quiet", "--mirror", ".", filepath.Join(o.root, "large.git"))
		large := forge.Project("large").In(acme).ImportedFrom(o.URL + "/large.git").Build()
		f.Create(large)
		f.ExpectWaiting(large, v1alpha1.ReasonImportFailed,
			"importing "+o.URL+"/large.git: The repository has more than the 1 MiB that the server allows an import.", "(the next attempt is in a day)")
		attempts := o.attempts.Load()
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		look(large)
		f.ExpectWaiting(large, v1alpha1.ReasonImportFailed, "1 MiB")
		Expect(o.attempts.Load()).To(Equal(attempts), "an hour later")
		Expect(repositoryOf(large).Check()).To(MatchError(git.ErrNotFound))

		small := forge.Project("small").In(acme).ImportedFrom(o.URL + "/tools.git").Build()
		f.Create(small)
		o.imported(small)
	})

	It("is refused with wrong credentials, shows none of them, and tries again later", func() {
		f.Run()
		s := secret("origin", o.URL, map[string]string{"username": importer, "password": "wrong-horse"})
		f.Create(s)
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/private/tools.git").ImportSecret("origin").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImportFailed,
			"importing "+o.URL+"/private/tools.git: the remote does not accept the credentials, or requires credentials: correct Secret origin (Forgeplane tries again)")
		for _, c := range tools.Status.Conditions {
			Expect(c.Message).NotTo(Or(ContainSubstring("wrong-horse"), ContainSubstring(importer)))
		}
		attempts := o.attempts.Load()

		By("not trying before the next attempt is due")
		f.Change(s, func() { s.StringData = map[string]string{"password": password} })
		look(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImportFailed)
		Expect(o.attempts.Load()).To(Equal(attempts))

		By("trying when the next attempt is due")
		f.Clock.SetTime(f.Clock.Now().Add(15 * time.Second))
		look(tools)
		o.imported(tools)
	})

	DescribeTable("says why it cannot be imported",
		func(url func() string, words string) {
			f.Run()
			tools := forge.Project("tools").In(acme).ImportedFrom(url()).Build()
			f.Create(tools)
			f.ExpectWaiting(tools, v1alpha1.ReasonImportFailed, "importing "+url(), words, "Forgeplane tries again")
			Expect(filepath.Glob(place(tools, shard)+"*")).To(BeEmpty(), "nothing is left behind")
		},
		Entry("when the host does not answer", func() string { return "http://127.0.0.1:1/tools.git" }, "Failed to connect"),
		Entry("when the host is unknown", func() string { return "http://nobody.invalid/tools.git" }, "Could not resolve host"),
		Entry("when the repository does not exist", func() string { return o.URL + "/none.git" }, "not found"),
		Entry("when credentials are needed", func() string { return o.URL + "/private/tools.git" },
			"private/tools.git: the remote does not accept the credentials, or requires credentials: set importSecretRef (Forgeplane tries again)"),
	)

	DescribeTable("is refused by the schema",
		func(url, words string) {
			f.ExpectRefused(forge.Project("tools").In(acme).ImportedFrom(url).Build(), "spec.importURL", words)
		},
		Entry("with credentials in the URL", "https://ann:secret@example.com/tools.git", "importSecretRef"),
		Entry("with the end of a password after the host", "https://ann:1/secret@example.com/tools.git", "importSecretRef"),
		Entry("with a query", "https://example.com/tools.git?private_token=secret", "a query"),
		Entry("with a fragment", "https://ann:1#secret", "a fragment"),
		Entry("with another protocol", "ssh://example.com/tools.git", "importURL"),
		Entry("with an external helper", "ext::sh -c touch% /tmp/x", "importURL"),
		Entry("with an option instead of a URL", "--upload-pack=touch", "importURL"),
		Entry("with a line break", "https://example.com/\ntools.git", "importURL"),
	)

	It("cannot be imported later or from elsewhere, but can drop its importURL", func() {
		f.Run()
		plain := forge.Project("plain").In(acme).Build()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/tools.git").Build()
		f.Create(plain, tools)
		f.ExpectReady(plain)
		o.imported(tools)
		const message = "importURL is read once"
		f.ExpectChangeRefused(plain, func() { plain.Spec.ImportURL = o.URL + "/tools.git" }, message)
		f.ExpectChangeRefused(tools, func() { tools.Spec.ImportURL = o.URL + "/other.git" }, message)
		f.Change(tools, func() { tools.Spec.ImportURL = "" })
		o.imported(tools)
	})

	It("is not imported while it is suspended, and afterwards from the beginning", func() {
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/held/tools.git").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImporting)
		Eventually(o.waiting.Load).Should(BeEquivalentTo(1))
		f.Change(tools, func() { tools.Spec.Suspend = true })
		f.ExpectSettled(tools, v1alpha1.ReasonSuspended, "the repository is not imported")
		Expect(tools.Status.FullPath).To(Equal("acme/tools"), "the rest of the project is in force")
		Expect(repositoryOf(tools).Check()).To(MatchError(git.ErrNotFound))
		o.release()
		attempts := o.attempts.Load()
		f.ExpectRestartWritesNothing()
		Expect(o.attempts.Load()).To(Equal(attempts))

		f.Change(tools, func() { tools.Spec.Suspend = false })
		o.imported(tools)
		f.Change(tools, func() { tools.Spec.Suspend = true })
		o.imported(tools)
		Expect(f.Events()).NotTo(ContainElement(HavePrefix("Warning")), "this is ordinary progress")
	})

	It("shows that it is being imported, and is imported again after a restart in between", func() {
		running := f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/held/tools.git").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImporting, "importing "+o.URL)
		Eventually(o.waiting.Load).Should(BeEquivalentTo(1))
		Expect(place(tools, shard)).NotTo(BeADirectory(), "it appears as a whole or not at all")
		running.Stop()
		Expect(place(tools, shard)).NotTo(BeADirectory())
		o.release()
		f.Run()
		o.imported(tools)
		Expect(filepath.Glob(place(tools, shard) + "*")).To(HaveLen(1))
	})

	It("can be deleted during the import, and leaves nothing behind", func() {
		f.Run()
		tools := forge.Project("tools").In(acme).ImportedFrom(o.URL + "/held/tools.git").Build()
		f.Create(tools)
		f.ExpectWaiting(tools, v1alpha1.ReasonImporting)
		Eventually(o.waiting.Load).Should(BeEquivalentTo(1))
		f.Delete(tools)
		f.ExpectGone(tools)
		Expect(filepath.Glob(place(tools, shard) + "*")).To(BeEmpty())
	})

	It("does not delay the creation of other projects", func() {
		f.Run()
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			f.Create(forge.Project(name).In(acme).ImportedFrom(o.URL + "/held/tools.git").Build())
		}
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectReady(web)
		quick := forge.Project("quick").In(acme).ImportedFrom(o.URL + "/tools.git").Build()
		f.Create(quick)
		f.ExpectWaiting(quick, v1alpha1.ReasonImporting)
		o.release()
		o.imported(quick)
	})
})
