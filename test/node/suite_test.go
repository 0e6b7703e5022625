// Package node_test installs the Helm chart on the node of "make node", in the way of a user.
package node_test

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

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

func TestNode(t *testing.T) {
	suite.Run(t, "Node")
}

const (
	root      = "../.."
	namespace = "forgeplane-system"
	in        = " --namespace " + namespace
)

// The specs use a checkout with the image in .dev/image, and a terminal in it.
var (
	checkout *installation.Checkout
	user     terminal.Terminal
	cluster  string // the program of make node
)

var _ = BeforeSuite(func(ctx context.Context) {
	if os.Getenv("FORGEPLANE_SOAK") == "" {
		return
	}
	build := exec.CommandContext(ctx, "go", "run", "./hack/build", "node")
	build.Dir = root
	made, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(made))
	cluster, err = filepath.Abs(filepath.Join(root, "bin", "node", "cluster"))
	Expect(err).NotTo(HaveOccurred())
	said, err := exec.CommandContext(ctx, cluster, "-check").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(said))
	if len(said) > 0 {
		Skip(string(said))
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			Skip("SKIPPED: the node is not tried, because its image cannot be built: " + err.Error())
		}
	}
	helm := installation.Helm(ctx)
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	checkout = installation.NewCheckout()
	user = checkout.Developer()
	user = user.With("PATH=" + helm + ":" + filepath.Dir(binaries.Kubectl) + ":" + user.Getenv("PATH"))
	user.Do("make", "image", "OUT=.dev/image")
})

// node is a running node.
type node struct {
	user       terminal.Terminal // of the administrator, in the checkout
	network    string            // the process that holds the network
	deployment string            // of the servers
}

// startNode starts a node with images, which are in OCI layouts. It stops with the container of specs.
func startNode(images ...string) *node {
	GinkgoHelper()
	output := filepath.Join(user.Space(), "output")
	p, err := process.Start(process.Program{
		Name: "make node", Path: cluster, Args: []string{"-images=" + strings.Join(images, " ")}, Log: output, Grace: time.Minute,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(p.Stop()).To(Succeed()) })
	var said string
	Eventually(func() string {
		select {
		case <-p.Done():
			StopTrying("the node has ended").Wrap(p.Ended()).Now()
		default:
		}
		text, err := os.ReadFile(output)
		Expect(err).NotTo(HaveOccurred())
		said = string(text)
		return said
	}).Should(ContainSubstring("The node is ready."))
	told := regexp.MustCompile(`nsenter --target=(\d+) --net\n +export KUBECONFIG=(\S+)`).FindStringSubmatch(said)
	Expect(told).To(HaveLen(3), said)
	return &node{user: user.With("KUBECONFIG=" + told[2]), network: told[1], deployment: "forgeplane-all"}
}

// explain writes what is on the node into the log, if the spec has failed.
func (n *node) explain() {
	if n == nil || !CurrentSpecReport().Failed() {
		return
	}
	for _, command := range []string{
		"get pods,jobs,persistentvolumeclaims,services --all-namespaces --output=wide", "events --all-namespaces", "describe pods" + in,
		"logs --tail=50 --selector app.kubernetes.io/name=forgeplane" + in,
	} {
		screen, _ := n.user.Try("nsenter", n.arguments("kubectl "+command)...)
		GinkgoWriter.Println(screen)
	}
}

// arguments returns the arguments of nsenter that run a script in the network of the node.
func (n *node) arguments(script string) []string {
	return []string{"--target=" + n.network, "--net", "sh", "-euc", script}
}

// run runs a script in the network of the node.
func (n *node) run(script string) string {
	GinkgoHelper()
	return n.user.Do("nsenter", n.arguments(script)...)
}

// inPod runs a program in a pod of the servers.
func (n *node) inPod(command string) string {
	GinkgoHelper()
	return n.run("kubectl exec deployment/" + n.deployment + in + " -- " + command)
}

// block is a block of commands in the documentation. The last command of a refused one must fail.
type block struct {
	text    string
	refused bool
}

// commands returns the blocks of commands in a section of a page.
func commands(page, heading string) (all []block) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout.Dir, page))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```sh( refused)?\n(.*?)\n```").FindAllStringSubmatch(section, -1) {
		all = append(all, block{text: m[2], refused: m[1] != ""})
	}
	Expect(all).NotTo(BeEmpty(), heading)
	return all
}

// measured puts a measurement into the report that Ginkgo makes of the spec.
func measured(what, format string, values ...any) {
	AddReportEntry(what+": "+fmt.Sprintf(format, values...), ReportEntryVisibilityAlways)
}
