// Package walkthrough runs the commands of the documentation in its own checkout, in the way of a reader.
package walkthrough

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestWalkthrough(t *testing.T) {
	suite.Run(t, "Walkthrough")
}

// elsewhere are the commands that are not run at their place in the documentation, with the reason.
var elsewhere = map[string]string{
	"make run":  "the suite has started what it starts, in the same checkout",
	"make test": "this test is a part of it",
	"helm install forgeplane charts/forgeplane --namespace forgeplane-system --create-namespace": "test/chart runs it, in a cluster in which Forgeplane is not yet",
	"make bench":              "it takes an hour, and the machine for itself",
	"make bench ROWS='^git/'": "see make bench",
	"make bench ROWS='^(git|protections|restart)/'": "see make bench",
	"go run ./test/bench --list":                    "it compiles Forgeplane anew, since the copy of the checkout is in another place",
}

const installs = "test/chart runs them, in a cluster in which Forgeplane is not yet"

// apart are the pages whose commands are not run here, with the reason.
var apart = map[string]string{
	"docs/helm.md":      installs,
	"docs/install.md":   installs,
	"docs/upgrade.md":   installs,
	"docs/uninstall.md": installs,
}

// helm is the directory of Helm.
var (
	checkout *installation.Checkout
	ports    installation.Ports
	running  *installation.Run
	helm     string
)

var _ = BeforeSuite(func(ctx context.Context) {
	helm = installation.Helm(ctx)
	checkout = installation.NewCheckout()
	ports = installation.FreePorts()
	start()
	DeferCleanup(func() { running.Stop() })
	running.WaitReady()
})

// start starts make run with further variables.
func start(env ...string) { running = checkout.Start(append(ports.Variables(), env...)...) }

var _ = Describe("The commands", Ordered, ContinueOnFailure, func() {
	ran := map[string]bool{}

	for _, page := range pages() {
		if _, ok := apart[page.path]; ok {
			continue
		}
		Describe("of "+page.path, Ordered, func() {
			var shell *shell

			BeforeAll(func() {
				shell = open()
				// The README describes how to begin. The other pages assume a running Forgeplane.
				if page.path != "README.md" {
					_, err := shell.run(". .dev/env")
					Expect(err).NotTo(HaveOccurred())
				}
			})

			for _, block := range page.blocks {
				if block.mark == withRunner || block.mark == restores {
					continue
				}
				It(fmt.Sprintf("in line %d", block.line), func() {
					if strings.Contains(block.text, "skopeo ") {
						needSkopeo()
					}
					var script strings.Builder
					for command := range strings.Lines(block.text) {
						if _, ok := elsewhere[strings.TrimSpace(command)]; ok {
							ran[strings.TrimSpace(command)] = true
							continue
						}
						script.WriteString(command)
					}
					screen, err := shell.run(script.String())
					if block.mark == refused {
						Expect(err).To(HaveOccurred(), "%s\n%s", block.text, screen)
						return
					}
					Expect(err).NotTo(HaveOccurred(), "%s\n%s", block.text, screen)
				})
			}
		})
	}

	It("of the README push a job, which make runner executes, and those for jobs", func(ctx context.Context) {
		checkout.Runner(ctx)
		shell := open()
		make, err := exec.LookPath("make")
		Expect(err).NotTo(HaveOccurred())
		output := filepath.Join(GinkgoT().TempDir(), "runner.out")
		runner, err := process.Start(process.Program{Name: "make runner", Path: make, Args: []string{"runner"}, Dir: checkout.Dir, Env: os.Environ(), Log: output})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(runner.Stop)
		const show = `. .dev/env; kubectl get --raw "/apis/rest.forgeplane.dev/v4/projects/acme%2Fwebsite/`
		Eventually(func() (string, error) { return shell.run(show + `pipelines?ref=tested&status=success"`) }).WithPolling(time.Second).
			Should(ContainSubstring(`"source":"push"`), func() string {
				text, _ := os.ReadFile(output)
				return string(text)
			})
		jobs, err := shell.run(show + `jobs"`)
		Expect(err).NotTo(HaveOccurred())
		id := regexp.MustCompile(`^\[\{"id":(\d+)`).FindStringSubmatch(jobs)
		Expect(id).NotTo(BeNil(), jobs)
		Expect(shell.run(show + "jobs/" + id[1] + `/trace"`)).To(ContainSubstring("Tested for dana"))
		for _, block := range marked(withRunner) {
			shell.must(block, ". .dev/env\n"+block.text)
		}
	})

	It("leave only errors in the log that they cause, up to a stop", func() {
		running.Interrupt()
		log, err := os.ReadFile(filepath.Join(checkout.Data(), "logs", "forgeplane.log"))
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(log)) {
			Expect(line).To(ContainSubstring("the repository is no longer on storage default"), "docs/backup.md loses one")
		}
	})

	It("of docs/backup.md restore everything into an empty cluster", suite.Soak, func() {
		if _, err := exec.LookPath("jq"); err != nil {
			Skip("SKIPPED: jq is not installed, so no restore is tried")
		}
		shell := open()
		for _, block := range marked(restores) {
			before, after, starts := strings.Cut(block.text, "make run RUN_SAMPLES=false\n")
			shell.must(block, before)
			if starts {
				start("RUN_SAMPLES=false")
				running.WaitReady()
				shell.must(block, after)
			}
		}
		Expect(shell.run("cat .dev/restored.json.ids")).To(ContainSubstring("Project acme/website "))
		const pushed = "rev-parse refs/remotes/origin/tested"
		now, err := shell.run("git -C .dev/website " + pushed)
		Expect(err).NotTo(HaveOccurred())
		Expect(shell.run("git -C .dev.lost/website " + pushed)).To(Equal(now))
	})

	It("that are run elsewhere still exist", func() {
		for command := range elsewhere {
			Expect(ran).To(HaveKey(command))
		}
	})
})

// shell is a POSIX shell into which a user types one block after the other.
type shell struct {
	terminal terminal.Terminal
	state    string
}

func open() *shell {
	GinkgoHelper()
	bare := checkout.Terminal()
	s := &shell{terminal: bare.With("PATH=" + helm + ":" + bare.Getenv("PATH"))}
	s.state = filepath.Join(s.terminal.Space(), "state")
	s.terminal = s.terminal.With("XDG_RUNTIME_DIR=" + s.terminal.Space()) // where skopeo keeps passwords
	Expect(os.WriteFile(s.state, nil, 0o600)).To(Succeed())
	return s
}

// run runs a block up to the first command that fails. It starts with the state after the previous block: its directory and its exported variables.
func (s *shell) run(block string) (screen string, err error) {
	const script = `. "$1"
set -e
eval "$2"
{ export -p; printf "cd '%s'\n" "$PWD"; } > "$1"`
	return s.terminal.Try("sh", "-c", script, "sh", s.state, block)
}

// must runs a script for a block, which must succeed.
func (s *shell) must(b block, script string) {
	GinkgoHelper()
	screen, err := s.run(script)
	Expect(err).NotTo(HaveOccurred(), "%s, line %d\n%s", b.page, b.line, screen)
}

// needSkopeo skips a spec where skopeo is not installed.
func needSkopeo() {
	GinkgoHelper()
	_, err := exec.LookPath("skopeo")
	if os.Getenv("FORGEPLANE_TEST_SKOPEO") == "" && err != nil {
		Skip("SKIPPED: skopeo is not installed, so it is not tried")
	}
	Expect(err).NotTo(HaveOccurred())
}

// page is a file of the documentation.
type page struct {
	path   string
	blocks []block
}

// block is a fenced block of commands.
type block struct {
	page string
	line int
	text string
	mark string
}

// These are the marks of blocks.
const (
	// untested is for commands that need what is not here.
	untested = "untested"
	// refused is for blocks that end with a command that fails.
	refused = "refused"
	// withRunner is for blocks that need the runner of make runner.
	withRunner = "runner"
	// restores is for blocks that restore a backup, with make run stopped.
	restores = "restore"
)

// marked returns the blocks of all pages with a mark.
func marked(mark string) (all []block) {
	for _, page := range pages() {
		for _, block := range page.blocks {
			if block.mark == mark {
				all = append(all, block)
			}
		}
	}
	return all
}

// pages returns README.md and then the pages in docs, in the order of their names.
func pages() []page {
	const root = "../.."
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		panic("there are no pages in docs")
	}
	var all []page
	for _, file := range append([]string{filepath.Join(root, "README.md")}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			panic(err)
		}
		all = append(all, page{path, blocks(path, string(text))})
	}
	return all
}

// blocks returns the text between each line that begins with "```sh" and the next fence, except blocks that are marked as untested.
func blocks(page, text string) []block {
	var all []block
	var open *block
	number := 0
	for line := range strings.Lines(text) {
		number++
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		language, mark, _ := strings.Cut(info, " ")
		switch {
		case fence && open != nil:
			all = append(all, *open)
			open = nil
		case fence && language == "sh" && mark != untested:
			open = &block{page: page, line: number + 1, mark: mark}
		case open != nil:
			open.text += line
		}
	}
	return all
}
