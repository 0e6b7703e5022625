package reference_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/reference"
	"github.com/forgeplane/forgeplane/test/history"
)

func TestMain(m *testing.M) {
	if status, called := reference.Main(os.Args); called {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

func TestGitBackend_servesClonesAndPushesUntilStopped(t *testing.T) {
	g := NewWithT(t)
	client, err := gitclient.New(filepath.Join(t.TempDir(), "home"), "ann", "secret")
	g.Expect(err).NotTo(HaveOccurred())
	served := t.TempDir()
	repository := filepath.Join(served, "one.git")
	g.Expect(os.Mkdir(repository, 0o700)).To(Succeed())
	g.Expect(client.History(t.Context(), repository, history.Options{Commits: 5})).To(Succeed())

	backend, err := reference.StartGitBackend(t.Context(), served)
	g.Expect(err).NotTo(HaveOccurred())
	url := backend.URL + "/one.git"
	_, err = client.Clone(t.Context(), url)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.Clone(t.Context(), backend.URL+"/other.git")
	g.Expect(err).To(MatchError(ContainSubstring("not found")))

	_, err = client.Run(t.Context(), repository, nil, "config", "http.receivepack", "true")
	g.Expect(err).NotTo(HaveOccurred())
	work := t.TempDir()
	_, err = client.Run(t.Context(), work, nil, "clone", "--quiet", "--bare", url, ".")
	g.Expect(err).NotTo(HaveOccurred())
	commit, err := client.Commit(t.Context(), work, "feature", 1)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.Push(t.Context(), work, url, commit, "feature")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.Run(t.Context(), repository, nil, "rev-parse", "refs/heads/feature")).To(Equal(commit))

	g.Expect(backend.Stop()).To(Succeed())
	g.Expect(syscall.Kill(backend.PID(), 0)).To(MatchError(syscall.ESRCH))
}

func TestCache_doesNotStartIfItCannotBeFilled(t *testing.T) {
	g := NewWithT(t)
	_, err := reference.StartCache(t.Context(), filepath.Join(t.TempDir(), "absent"))
	g.Expect(err).To(MatchError(ContainSubstring("did not become ready")))
}

func TestFiles_areStoredAndServed(t *testing.T) {
	g := NewWithT(t)
	server, err := reference.StartFiles(t.Context(), t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	for _, content := range []string{"first", "2"} {
		for _, method := range []string{http.MethodPut, http.MethodGet} {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.Address+"/"+content, strings.NewReader(content))
			g.Expect(err).NotTo(HaveOccurred())
			answer, err := http.DefaultClient.Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer).To(HaveHTTPStatus(http.StatusOK))
			if method == http.MethodGet {
				g.Expect(answer).To(HaveHTTPBody(content))
			}
			g.Expect(answer.Body.Close()).To(Succeed())
		}
	}
	g.Expect(server.Stop()).To(Succeed())
}

func TestMain_acceptsOnlyArgumentsOfAReference(t *testing.T) {
	g := NewWithT(t)
	for _, args := range [][]string{{"bench"}, {"bench", "--rows", "git", "x"}, {"bench", "reference", "unknown", "x"}, {"bench", "reference"}} {
		_, called := reference.Main(args)
		g.Expect(called).To(BeFalse(), "%q", args)
	}
}
