package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// printed returns the commands at the end of the output of make run.
func printed() []string {
	GinkgoHelper()
	_, text, found := strings.Cut(running.Output(), "Try next, in another shell in this directory:\n\n")
	Expect(found).To(BeTrue())
	var commands []string
	for line := range strings.Lines(text) {
		command, indented := strings.CutPrefix(line, "  ")
		Expect(indented).To(BeTrue(), line)
		commands = append(commands, strings.TrimSpace(command))
	}
	return commands
}

// harbour is a project that must be as before after each start.
const harbour = `
apiVersion: v1
kind: Namespace
metadata: {name: harbour}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: harbour, namespace: harbour}
spec: {path: harbour}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: app, namespace: harbour}
spec: {path: app, groupRef: {name: harbour}, defaultBranch: main}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: root, namespace: harbour}
spec: {groupRef: {name: harbour}, userRef: {name: root}, role: Maintainer}
`

var _ = Describe("make run", func() {
	It("writes a file to source that contains everything that clients need", func() {
		Expect(admin.Getenv("FORGEPLANE_URL")).To(Equal(fmt.Sprintf("http://127.0.0.1:%d", ports.HTTP)))
		Expect(admin.Getenv("FORGEPLANE_REGISTRY")).To(Equal(fmt.Sprintf("127.0.0.1:%d", ports.HTTP)))
		Expect(admin.Getenv("FORGEPLANE_TOKEN")).To(Equal(admin.Kubectl("get", "secret", "root-token", "--namespace="+forgeplane.Namespace,
			"--output=go-template={{.data.token | base64decode}}")))
		Expect(admin.Getenv("KUBECONFIG")).To(BeARegularFile())
		binaries, err := controlplane.FindBinaries()
		Expect(err).NotTo(HaveOccurred())
		first, _, _ := strings.Cut(admin.Getenv("PATH"), ":")
		kubectl, err := filepath.EvalSymlinks(filepath.Join(first, "kubectl"))
		Expect(err).NotTo(HaveOccurred())
		Expect(filepath.EvalSymlinks(binaries.Kubectl)).To(Equal(kubectl))
		Expect(admin.Kubectl("version")).To(ContainSubstring("Server Version"))
	})

	It("lets no other user of the machine read its credentials", func() {
		for _, name := range []string{"env", "git-credentials", "control-plane/administrator.kubeconfig", "manager/forgeplane.kubeconfig", "apiserver/forgeplane.kubeconfig"} {
			info, err := os.Stat(filepath.Join(checkout.Data(), name))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()&0o077).To(BeZero(), name)
		}
	})

	It("ends its output with three commands that work as printed", func() {
		commands := printed()
		Expect(commands).To(HaveLen(3))
		shell := checkout.Terminal()
		for _, command := range commands {
			Expect(shell.Do("sh", "-c", command)).NotTo(ContainSubstring("error"), command)
		}
		Expect(shell.Do("sh", "-c", commands[0])).To(ContainSubstring("forgeplane/forgeplane"))
		head := shell.Git("rev-parse", "HEAD")
		Expect(shell.Git("ls-remote", admin.Getenv("FORGEPLANE_URL")+"/forgeplane/forgeplane.git")).
			To(And(ContainSubstring(head+"\trefs/heads/main"), ContainSubstring(head+"\trefs/heads/first-try")))
	})

	It("refuses a second start at once, and names the process of the first one", func() {
		begun := time.Now()
		screen := checkout.Terminal().With(installation.FreePorts().Variables()...).Fail(checkout.Program("run"))
		report("refused after", time.Since(begun))
		Expect(screen).To(And(ContainSubstring(checkout.Data()), ContainSubstring("is in use by another run"),
			ContainSubstring(fmt.Sprintf("process %d)", running.PID())), ContainSubstring("DEV_DIR=")))
		Expect(admin.Kubectl("get", "--raw=/readyz")).To(Equal("ok"), "the first goes on")
	})

	It("names each port that is taken, and the variable that changes the port", func() {
		elsewhere := GinkgoT().TempDir()
		screen := checkout.Terminal().With(ports.Variables()...).With("DEV_DIR=" + elsewhere).Fail(checkout.Program("run"))
		for variable, port := range map[string]int{"HTTP_PORT": ports.HTTP, "KUBE_PORT": ports.Kube, "TLS_PORT": ports.TLS, "HEALTH_PORT": ports.Health, "METRICS_PORT": ports.Metrics} {
			Expect(screen).To(ContainSubstring(fmt.Sprintf("port %d, for ", port)))
			Expect(screen).To(ContainSubstring("make run " + variable + "=<port>"))
		}
		Expect(filepath.Join(elsewhere, "control-plane")).NotTo(BeADirectory(), "nothing was started")
	})

	Describe("when it is stopped and started again", Ordered, func() {
		var before, head string
		as := func() terminal.Terminal { return admin.As("root", admin.Getenv("FORGEPLANE_TOKEN")) }
		url := func() string { return admin.Getenv("FORGEPLANE_URL") + "/harbour/app.git" }

		BeforeAll(func() {
			admin.Apply(harbour)
			admin.WaitReady("group,project,membership", "--all", "--namespace=harbour")
			clone := as().Clone(url())
			head = clone.Commit("README.md", "The beginning.\n")
			clone.MustPush("main")
			admin.Kubectl("wait", "--for=jsonpath={.status.headCommit}="+head, "--timeout=60s", "project/app", "--namespace=harbour")
			before = identities()
		})

		It("leaves no process behind when it is interrupted", func() {
			// Processes that read repositories can be among them.
			parts := slices.DeleteFunc(checkout.Processes(), func(line string) bool { return strings.Contains(line, "git ") })
			Expect(parts).To(HaveLen(6), "itself, the two of Forgeplane, and the three of the control plane")
			report("stopped after", running.Interrupt())
			Expect(checkout.Processes()).To(BeEmpty())
			expectCleanLogs()
			expectQuietLogs()
			Expect(filepath.Join(checkout.Data(), "env")).To(BeARegularFile(), "who has a shell open can go on later")
		})

		It("leaves a control plane behind that works without it", func() {
			plane, err := controlplane.Start(context.Background(), controlplane.Options{
				Directory: filepath.Join(checkout.Data(), "control-plane"), Logs: GinkgoT().TempDir(), Port: ports.Kube,
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { Expect(plane.Stop()).To(Succeed()) })
			Expect(admin.Kubectl("get", "apiservices", "--output=name")).NotTo(ContainSubstring("v4.rest.forgeplane.dev"))
			for _, command := range [][]string{{"api-resources"}, {"get", "projects", "--all-namespaces"}, {"create", "namespace", "quiet"}} {
				complaint := append([]string{"-c", `exec kubectl "$@" 2>&1 >/dev/null`, "sh", "--cache-dir=" + admin.Space()}, command...)
				Expect(admin.Do("sh", complaint...)).To(BeEmpty(), "%q", command)
			}
			admin.Kubectl("delete", "namespace", "quiet", "--timeout=60s")
		})

		It("uses the programs in KUBEBUILDER_ASSETS, and finds the same objects, repositories and tokens", func() {
			assets, used := assets("etcd", "kube-apiserver")
			start("KUBEBUILDER_ASSETS=" + assets)
			report("ready again after", readyTime)
			Expect(used()).To(ConsistOf("etcd", "kube-apiserver"))
			Expect(identities()).To(Equal(before))
			Expect(as().Git("ls-remote", url(), "refs/heads/main")).To(HavePrefix(head))
		})

		It("stops with an error, and with all its parts, when a part stops", func() {
			Expect(syscall.Kill(checkout.PID("forgeplane apiserver"), syscall.SIGKILL)).To(Succeed())
			Expect(running.WaitEnded()).To(MatchError(ContainSubstring("exit status 1")))
			// Lines of its log follow, so this need not be among the last lines.
			Expect(running.Output()).To(ContainSubstring("forgeplane ended (signal: killed)"))
			Expect(checkout.Processes()).To(BeEmpty())
			expectCleanLogs()
			start()
			Expect(identities()).To(Equal(before))
		})
	})
})

// identities returns the names, uids and ids of all objects, and the values of the tokens.
func identities() string {
	GinkgoHelper()
	kinds := admin.Kubectl("api-resources", "--api-group=forgeplane.dev", "--verbs=list", "--output=name")
	objects := admin.Kubectl("get", strings.ReplaceAll(kinds, "\n", ","), "--all-namespaces",
		`--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.uid} {.spec.id}{"\n"}{end}`)
	Expect(objects).To(And(ContainSubstring("User /root "), ContainSubstring("Project harbour/app ")))
	secrets := admin.Kubectl("get", "secrets", "--namespace="+forgeplane.Namespace, `--output=jsonpath={range .items[*]}{.metadata.name} {.data}{"\n"}{end}`)
	Expect(secrets).To(ContainSubstring("root-token "))
	return objects + secrets + admin.Getenv("FORGEPLANE_TOKEN")
}

// assets creates a directory with the given programs of the control plane, which record that they were used.
func assets(programs ...string) (directory string, used func() []string) {
	GinkgoHelper()
	directory = GinkgoT().TempDir()
	notes := GinkgoT().TempDir()
	binaries, err := controlplane.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	paths := map[string]string{"etcd": binaries.Etcd, "kube-apiserver": binaries.APIServer}
	for _, name := range programs {
		script := fmt.Sprintf("#!/bin/sh\n: >'%s'\nexec '%s' \"$@\"\n", filepath.Join(notes, name), paths[name])
		Expect(os.WriteFile(filepath.Join(directory, name), []byte(script), 0o755)).To(Succeed())
	}
	return directory, func() (names []string) {
		GinkgoHelper()
		entries, err := os.ReadDir(notes)
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
}
