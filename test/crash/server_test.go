package crash

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
)

// server is a process of Forgeplane.
type server struct {
	options forgeplane.Options
	process *process.Process
	// prepare is a script for a POSIX shell that prepares the environment of Forgeplane before it starts, or empty. Only Forgeplane sees the mounts
	// of the script.
	prepare string
}

// newServer returns a server that keeps its data in a directory.
func newServer(root string, controlPlane *controlplane.ControlPlane) server {
	GinkgoHelper()
	ports := installation.FreePorts()
	s := server{options: forgeplane.Options{
		Programs: filepath.Dir(checkout.Program("forgeplane")), Data: filepath.Join(root, "data"), Logs: filepath.Join(root, "logs"),
		HTTPPort: ports.HTTP, TLSPort: ports.TLS, HealthPort: ports.Health, ControlPlane: controlPlane,
	}}
	Expect(os.Mkdir(s.options.Data, 0o700)).To(Succeed())
	return s
}

// start starts the server in the way of make run, and returns when it is ready, with the time that this took.
func (s *server) start() time.Duration {
	GinkgoHelper()
	begun := time.Now()
	program, err := s.options.Program()
	Expect(err).NotTo(HaveOccurred())
	if s.prepare != "" {
		program = inNamespace(program, s.prepare)
	}
	s.process, err = process.Start(program)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.options.AwaitReady(s.process, patience.Wait)).To(Succeed(), func() string { return s.process.Tail() })
	return time.Since(begun)
}

// stop stops the server gracefully.
func (s *server) stop() {
	GinkgoHelper()
	if s.process != nil {
		Expect(s.process.Stop()).To(Succeed())
	}
}

// kill kills the server with SIGKILL, but none of the processes that it has started.
func (s *server) kill() {
	GinkgoHelper()
	Expect(s.process.Kill()).To(Succeed())
}

// address is the address of the server, without kube-apiserver.
func (s *server) address() string { return fmt.Sprintf("http://127.0.0.1:%d", s.options.HTTPPort) }

// said reports whether the log has some words.
func (s *server) said(words string) bool {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(s.options.Logs, "forgeplane.log"))
	Expect(err).NotTo(HaveOccurred())
	return strings.Contains(string(text), words)
}

// url returns the address of a project in "yard".
func (s *server) url(project string) string {
	return s.address() + "/yard/" + project + ".git"
}

// rest makes a request to the REST API, and returns the status.
func (s *server) rest(token, method, path, body string) int {
	GinkgoHelper()
	status, _ := s.answer(token, method, path, body)
	return status
}

// answer is rest with the body of the answer.
func (s *server) answer(token, method, path, body string) (status int, text string) {
	GinkgoHelper()
	r, err := http.NewRequest(method, s.address()+"/api/v4"+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("PRIVATE-TOKEN", token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Timeout: callTimeout}).Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(read)
}
