package node_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
)

// earlier is a commit whose activity database can be upgraded. The upgrades begin at it.
const earlier = "b9afc53"

// before is a checkout of the earlier commit with its image; empty until a container of specs needs it.
var before string

// buildEarlier makes the checkout of the earlier commit.
func buildEarlier() {
	GinkgoHelper()
	if before != "" {
		return
	}
	source, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	if _, err := user.Try("git", "-C", source, "cat-file", "-e", earlier+"^{commit}"); err != nil {
		Skip("SKIPPED: upgrades are not tried, because this checkout does not have the commit " + earlier)
	}
	made := filepath.Join(user.Space(), "earlier")
	user.Git("clone", "--quiet", "--no-checkout", source, made)
	user.In(made).Git("checkout", "--quiet", earlier)
	user.In(made).Do("make", "image", "OUT=.dev/image", "IMAGE=localhost/forgeplane:earlier")
	before = made
}

// startEarlier starts a node with the images of both commits.
func startEarlier() *node {
	GinkgoHelper()
	buildEarlier()
	return startNode(filepath.Join(before, ".dev", "image", "oci"), filepath.Join(checkout.Data(), "image", "oci"))
}

// installEarlier installs the chart of the earlier commit with further arguments of Helm, and pushes to a first project.
func (n *node) installEarlier(arguments string) forge {
	GinkgoHelper()
	chart := filepath.Join(before, "charts", "forgeplane")
	f := n.signIn(n.run("helm install forgeplane " + chart + " --create-namespace --set image.tag=earlier --wait" + in + arguments))
	n.pushFirst(f)
	Expect(n.inPod("forgeplane --version")).To(ContainSubstring(earlier))
	return f
}

// upgrade upgrades the earlier installation to this commit while clients push and read, and returns the answers to these.
func (n *node) upgrade(f forge) (pushes, reads answers) {
	GinkgoHelper()
	clone := filepath.Join(n.user.Space(), "clone")
	n.run(fmt.Sprintf("%s clone --quiet %s '%s'", f.git, f.url(), clone))
	pusher := n.startClient(fmt.Sprintf(`cd '%s' && git commit --quiet --allow-empty --message "$number" && timeout 20 %s push origin HEAD:refs/heads/pushed-$number`, clone, f.git))
	reader := n.startClient("timeout 20 git ls-remote " + f.url())
	pusher.awaitAnother()
	reader.awaitAnother()
	begun := time.Now()
	n.run(commands("docs/upgrade.md", "Upgrade")[0].text + " --set image.tag= --wait")
	measured("the upgrade", "%.1f s", time.Since(begun).Seconds())
	pusher.awaitAnother()
	reader.awaitAnother()
	pushes, reads = pusher.end(), reader.end()
	measured("the gap of the upgrade for pushes", "%.1f s; %d worked, %d failed", pushes.gap.Seconds(), pushes.worked, pushes.failed)
	measured("the gap of the upgrade for reads", "%.1f s; %d worked, %d failed", reads.gap.Seconds(), reads.worked, reads.failed)
	branches := n.run("git ls-remote " + f.url())
	for _, number := range pushes.last {
		Expect(branches+"\n").To(ContainSubstring("refs/heads/pushed-"+number+"\n"), "a push that was accepted")
	}
	Expect(n.inPod("forgeplane --version")).To(ContainSubstring(n.user.Git("rev-parse", "--short=12", "HEAD")))
	return pushes, reads
}

// uninstall removes the release, and expects that nothing of it is left that could block others.
func (n *node) uninstall() {
	GinkgoHelper()
	n.run(commands("docs/uninstall.md", "Remove the release")[0].text + " --wait")
	// Helm does not wait for the pods, which end the requests that they have.
	Eventually(func() string { return n.run("kubectl get deployments,pods,services,jobs --output=name" + in) }).Should(BeEmpty())
	Expect(n.run("kubectl get apiservices --output=name")).NotTo(ContainSubstring("rest.forgeplane.dev"))
	n.run("kubectl create namespace other && kubectl delete namespace other --timeout=60s")
}

// client is a process that repeats a request until it is stopped. Each line of its log has the time of a response in milliseconds, its result and its
// number.
type client struct {
	process *process.Process
	log     string
	stop    string // file
}

// startClient starts a client that runs a script for each request, with the number of the request as $number.
func (n *node) startClient(script string) *client {
	GinkgoHelper()
	space := n.user.Space()
	c := &client{log: filepath.Join(space, "log"), stop: filepath.Join(space, "stop")}
	loop := fmt.Sprintf(`number=0
while [ ! -e '%s' ]; do
	number=$((number + 1))
	if { %s; } >/dev/null 2>&1; then answer=worked; else answer=failed; fi
	echo "$(date +%%s%%3N) $answer $number"
	sleep 0.5
done`, c.stop, script)
	path, err := exec.LookPath("nsenter")
	Expect(err).NotTo(HaveOccurred())
	c.process, err = process.Start(process.Program{Name: "client", Path: path, Args: n.arguments(loop), Dir: n.user.Dir, Env: n.user.As("somebody", "").Env, Log: c.log})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.process.Stop()).To(Succeed()) })
	return c
}

// answers summarizes the responses to a client.
type answers struct {
	worked, failed int
	gap            time.Duration // the longest time between two requests that worked
	last           []string      // the numbers of the requests that worked
}

func (c *client) answers() (a answers) {
	GinkgoHelper()
	text, err := os.ReadFile(c.log)
	Expect(err).NotTo(HaveOccurred())
	var before int64
	for line := range strings.Lines(string(text)) {
		var at int64
		var answer, number string
		if _, err := fmt.Sscan(line, &at, &answer, &number); err != nil {
			continue // the line is not complete yet
		}
		if answer != "worked" {
			a.failed++
			continue
		}
		a.worked++
		a.last = append(a.last, number)
		if before != 0 {
			a.gap = max(a.gap, time.Duration(at-before)*time.Millisecond)
		}
		before = at
	}
	return a
}

// awaitAnother waits until a further request works.
func (c *client) awaitAnother() {
	GinkgoHelper()
	before := c.answers().worked
	Eventually(func() int { return c.answers().worked }).Should(BeNumerically(">", before))
}

// end stops a client, and returns its answers.
func (c *client) end() answers {
	GinkgoHelper()
	Expect(os.WriteFile(c.stop, nil, 0o600)).To(Succeed())
	Eventually(c.process.Done()).WithTimeout(patience.Wait).Should(BeClosed())
	return c.answers()
}

var _ = Describe("An upgrade from an earlier commit", Ordered, suite.Soak, func() {
	var (
		n     *node
		forge forge
	)

	BeforeAll(func() {
		n = startEarlier()
		forge = n.installEarlier("")
	})

	AfterEach(func() { n.explain() })

	It("loses nothing while clients push and read, and stops them only for a while", func() { n.upgrade(forge) })

	It("can be rolled back, to an image that starts on the newer database", func() {
		n.run("helm rollback forgeplane --wait" + in)
		Expect(n.inPod("forgeplane --version")).To(ContainSubstring(earlier))
		n.run("kubectl wait --for=condition=Available --timeout=60s apiservice/v4.rest.forgeplane.dev")
		// The pod is ready a moment before the node leads the Service to it.
		n.run("timeout 60 sh -c 'until git ls-remote " + forge.url() + "; do sleep 0.2; done'")
		n.run(forge.git + " push --quiet " + forge.url() + " HEAD:refs/heads/after-the-rollback")
		Expect(n.run("git ls-remote " + forge.url())).To(ContainSubstring("refs/heads/pushed-1\n"))
	})

	It("can be followed by an uninstallation that leaves nothing stuck", func() { n.uninstall() })
})

var _ = Describe("An upgrade of several servers from an earlier commit", Ordered, suite.Soak, func() {
	var (
		n     *node
		forge forge
	)

	BeforeAll(func() {
		database, err := url.Parse(os.Getenv("FORGEPLANE_TEST_POSTGRES"))
		Expect(err).NotTo(HaveOccurred())
		sockets := database.Query().Get("host")
		if sockets == "" {
			Skip("SKIPPED: the upgrade of several servers is not tried, because it needs PostgreSQL; this runs it: sh hack/postgres.sh make soak PART=node")
		}
		// The server runs beside the node, and the pods mount the directory of its socket.
		Expect(os.Chmod(sockets, 0o711)).To(Succeed()) //nolint:gosec // the pods are another user
		DeferCleanup(os.Chmod, sockets, os.FileMode(0o700))
		n = startEarlier()
		n.deployment = "forgeplane-apiserver"
		n.run("kubectl create namespace " + namespace + " && kubectl create secret generic database --from-literal='url=postgres://forgeplane@/postgres?host=/postgres'" + in)
		forge = n.installEarlier(fmt.Sprintf(` --set mode=separate,activityDatabase.secret.name=database,podDisruptionBudget.enabled=true \
	--set-json 'extraVolumes=[{"name":"postgres","hostPath":{"path":"%s","type":"Directory"}}]' \
	--set-json 'extraVolumeMounts=[{"name":"postgres","mountPath":"/postgres"}]'`, sockets))
	})

	AfterEach(func() { n.explain() })

	It("refuses no request of clients that push and read", func() {
		pushes, reads := n.upgrade(forge)
		Expect(pushes.failed + reads.failed).To(BeZero())
	})

	It("can be followed by an uninstallation that leaves nothing stuck", func() { n.uninstall() })
})
