package installation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/terminal"
)

const (
	stopTimeout = 60 * time.Second
	polling     = 20 * time.Millisecond
)

// Ports are the variables of make run for its ports.
type Ports struct{ HTTP, Kube, TLS, Health, Metrics int }

// FreePorts returns free ports.
func FreePorts() Ports {
	GinkgoHelper()
	var p Ports
	for _, port := range []*int{&p.HTTP, &p.Kube, &p.TLS, &p.Health, &p.Metrics} {
		var err error
		*port, err = controlplane.FreePort(context.Background())
		Expect(err).NotTo(HaveOccurred())
	}
	return p
}

// Variables returns the ports as environment variables of make run.
func (p Ports) Variables() []string {
	return []string{
		fmt.Sprintf("HTTP_PORT=%d", p.HTTP), fmt.Sprintf("KUBE_PORT=%d", p.Kube),
		fmt.Sprintf("TLS_PORT=%d", p.TLS), fmt.Sprintf("HEALTH_PORT=%d", p.Health),
		fmt.Sprintf("METRICS_PORT=%d", p.Metrics),
	}
}

// Run is a run of "make run", with its data in .dev of the checkout.
type Run struct {
	// Begun is the time of the start.
	Begun time.Time

	checkout *Checkout
	process  *process.Process
	output   string
}

// Start starts Forgeplane with make run and further environment variables. The caller must call Stop.
func (c *Checkout) Start(env ...string) *Run {
	GinkgoHelper()
	output, err := os.CreateTemp(c.Dir, ".run-*.out")
	Expect(err).NotTo(HaveOccurred())
	Expect(output.Close()).To(Succeed())
	r := &Run{Begun: time.Now(), checkout: c, output: output.Name()}
	r.process, err = process.Start(process.Program{
		Name: "make run", Path: c.Program("run"), Dir: c.Dir, Env: append(os.Environ(), env...), Log: r.output, Grace: stopTimeout,
	})
	Expect(err).NotTo(HaveOccurred())
	return r
}

// StartRunner starts the CI runner with the token of a runner of a forge, until the spec or suite has ended. Its jobs have a home of their own.
func (c *Checkout) StartRunner(forge, token string) {
	GinkgoHelper()
	space := GinkgoT().TempDir()
	p, err := process.Start(process.Program{
		Name: "gitlab-runner", Path: c.Program(runner), Dir: space, Log: filepath.Join(space, "runner.log"),
		Args: []string{"run-single", "--url", forge, "--executor", "shell", "--shell", "bash", "--builds-dir", space, "--cache-dir", space},
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + space, "CONFIG_FILE=" + filepath.Join(space, "config.toml"), "CI_SERVER_TOKEN=" + token},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill) // after a polite request, it would go on waiting for a job
}

// RegisterRunner makes the CI runner register itself with a registration token, and returns the token of the runner.
func (c *Checkout) RegisterRunner(ctx context.Context, forge, registration string) string {
	GinkgoHelper()
	space := GinkgoT().TempDir()
	file := filepath.Join(space, "config.toml")
	register := exec.CommandContext(ctx, c.Program(runner), "register", "--non-interactive", "--url", forge, "--executor", "shell")
	register.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + space, "CONFIG_FILE=" + file, "REGISTRATION_TOKEN=" + registration}
	output, err := register.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	written, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`token = "(.*)"`).FindSubmatch(written)
	Expect(found).To(HaveLen(2), "%s", written)
	return string(found[1])
}

// WaitReady waits until the output says that the run is ready, and returns how long that took.
func (r *Run) WaitReady() time.Duration {
	GinkgoHelper()
	Eventually(func() string {
		select {
		case <-r.process.Done():
			StopTrying("make run has ended").Wrap(r.process.Ended()).Now()
		default:
		}
		return r.Output()
	}).WithTimeout(patience.Wait).WithPolling(polling).Should(ContainSubstring("Try next"))
	return time.Since(r.Begun)
}

// Output returns the output of the run.
func (r *Run) Output() string {
	GinkgoHelper()
	text, err := os.ReadFile(r.output)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// PID returns the process id.
func (r *Run) PID() int { return r.process.PID() }

// Interrupt sends Ctrl-C, waits until the run has ended without a failure, and returns how long that took.
func (r *Run) Interrupt() time.Duration {
	GinkgoHelper()
	begun := time.Now()
	Expect(syscall.Kill(r.PID(), syscall.SIGINT)).To(Succeed())
	Expect(r.WaitEnded()).To(MatchError(ContainSubstring("exit status 0")))
	return time.Since(begun)
}

// Stop stops the run, if it has not ended yet.
func (r *Run) Stop() {
	GinkgoHelper()
	Expect(r.process.Stop()).To(Succeed())
}

// WaitEnded waits until the run has ended by itself, and returns its error.
func (r *Run) WaitEnded() error {
	GinkgoHelper()
	Eventually(r.process.Done()).WithTimeout(patience.Wait).WithPolling(polling).Should(BeClosed())
	return r.process.Ended()
}

// Kill ends the run like a crash.
func (r *Run) Kill() {
	GinkgoHelper()
	Expect(r.process.Kill()).To(Succeed())
}

// Data returns the directory that keeps everything.
func (c *Checkout) Data() string { return filepath.Join(c.Dir, ".dev") }

// Terminal returns a terminal in the checkout, without the environment of a run.
func (c *Checkout) Terminal() terminal.Terminal { return terminal.New(c.Dir, c.home) }

// Sourced returns a terminal in the checkout after ". .dev/env".
func (c *Checkout) Sourced() terminal.Terminal {
	GinkgoHelper()
	return c.Terminal().Sourced(".dev/env")
}

// Logs returns the paths of the logs and of the output of the last two starts of make run, whose parts must run in processes of their own.
func (c *Checkout) Logs() (files []string) {
	GinkgoHelper()
	for _, pattern := range []string{"logs*/*.log", "logs*/*/*.log"} {
		found, err := filepath.Glob(filepath.Join(c.Data(), pattern))
		Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	Expect(files).To(ContainElements(HaveSuffix("/logs/manager/forgeplane.log"), HaveSuffix("/logs/apiserver/forgeplane.log"), HaveSuffix("/logs/apiserver/audit.log")))
	outputs, err := filepath.Glob(filepath.Join(c.Dir, ".run-*.out"))
	Expect(err).NotTo(HaveOccurred())
	return append(files, outputs...)
}
