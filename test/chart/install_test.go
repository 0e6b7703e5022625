package chart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
)

const account = "system:serviceaccount:" + namespace + ":forgeplane"

// commands returns the commands in a section of docs/helm.md, block by block.
func commands(heading string) (all []string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout.Dir, "docs", "helm.md"))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	Expect(all).NotTo(BeEmpty(), heading)
	return all
}

func asJSON(object any) string {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func run(script string) string {
	GinkgoHelper()
	return admin.Do("sh", "-euc", script)
}

var _ = Describe("An installation with the commands of docs/helm.md", Ordered, func() {
	var cluster *controlplane.ControlPlane

	BeforeAll(func(ctx context.Context) {
		var err error
		cluster, err = controlplane.Start(ctx, controlplane.Options{Directory: filepath.Join(GinkgoT().TempDir(), "control-plane"), Ephemeral: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
		before := admin
		DeferCleanup(func() { admin = before })
		admin = admin.With("KUBECONFIG=" + cluster.Kubeconfig())
	})

	It("is accepted by the cluster, and shows the next steps", func() {
		install := commands("Install")
		notes := run(install[0])
		admin.Kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
		// The commands of the notes are indented.
		var script strings.Builder
		for line := range strings.Lines(notes) {
			if command, ok := strings.CutPrefix(line, "  "); ok {
				script.WriteString(command)
			}
		}
		Expect(script.String()).To(ContainSubstring("kubectl apply"))
		run(script.String())
		mounted := admin.Field(".spec.template.spec.containers[0].volumeMounts[*].mountPath", "deployment", "forgeplane-all", "--namespace="+namespace)
		Expect(strings.Fields(mounted)).To(ContainElement(admin.Field(".spec.path", "repositorystorage", "default")))
		for _, block := range install[1:] {
			Expect(run(block)).To(ContainSubstring("default"))
		}
	})

	It("has pods that the restricted pod security standard admits", func() {
		admin.Kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
		template := admin.Get("deployment", "forgeplane-all", "--namespace="+namespace).Object["spec"].(map[string]any)["template"].(map[string]any)
		pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "try", "namespace": namespace}, "spec": template["spec"]}
		admin.DoWith(asJSON(pod), "kubectl", "create", "--dry-run=server", "--filename=-")
	})

	It("starts with the arguments of its Deployment and the permissions of the chart", func() {
		identity, err := cluster.Identity(account, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
		Expect(err).NotTo(HaveOccurred())
		space := admin.Space()
		kubeconfig := filepath.Join(space, "kubeconfig")
		Expect(controlplane.WriteKubeconfig(kubeconfig, identity)).To(Succeed())
		Expect(admin.Field(".spec.template.spec.serviceAccountName", "deployment", "forgeplane-all", "--namespace="+namespace)).To(Equal("forgeplane"))
		given := strings.Split(admin.Field(`range .spec.template.spec.containers[0].args[*]}{@}{"\n"}{end`, "deployment", "forgeplane-all", "--namespace="+namespace), "\n")
		ports := installation.FreePorts()
		// If a flag is given twice, the last one counts. The paths and addresses differ on this machine.
		program := process.Program{
			Name: "forgeplane", Path: checkout.Program("forgeplane"), Dir: space, Log: filepath.Join(space, "log"),
			Args: append(slices.DeleteFunc(given, func(arg string) bool { return arg == "" }),
				"--kubeconfig="+kubeconfig, "--activity-database="+filepath.Join(space, "activity.db"), "--blobs="+filepath.Join(space, "blobs"), "--registry-storage="+filepath.Join(space, "registry"), "--runtime-dir="+filepath.Join(space, "run"),
				fmt.Sprintf("--http-address=127.0.0.1:%d", ports.HTTP), fmt.Sprintf("--tls-address=127.0.0.1:%d", ports.TLS),
				fmt.Sprintf("--health-address=127.0.0.1:%d", ports.Health)),
		}
		p, err := process.Start(program)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(p.Stop()).To(Succeed()) })
		Expect(forgeplane.Options{HealthPort: ports.Health}.AwaitReady(p, patience.Wait)).To(Succeed(), func() string { return p.Tail() })

		By("using the permissions")
		admin.Kubectl("wait", "--for=create", "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
		Expect(admin.Field(".spec.service.name", "apiservice", "v4.rest.forgeplane.dev")).To(Equal("forgeplane-apiserver"))
		admin.Kubectl("wait", "--for=condition=Ready=False", "--timeout=60s", "repositorystorage/default")
		Expect(admin.Field(".status.conditions[0].message", "repositorystorage", "default")).To(ContainSubstring("check that the volume is mounted"))
		Expect(p.Stop()).To(Succeed())
		log, err := os.ReadFile(program.Log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(log)).NotTo(ContainSubstring("forbidden"))
	})

	It("accepts other values", func() {
		for _, block := range commands("Values") {
			run(block)
		}
		Expect(admin.Field(".spec.template.spec.containers[0].args", "deployment", "forgeplane-all", "--namespace="+namespace)).
			To(ContainSubstring("--allow-private-targets=10.0.0.0/8,git.internal"))
		for _, block := range commands("Several replicas") {
			run(block)
		}
		Expect(admin.Kubectl("get", "deployments", "--namespace="+namespace, "--output=name")).
			To(Equal("deployment.apps/forgeplane-apiserver\ndeployment.apps/forgeplane-manager"))
	})

	It("is removed except for what holds data, and can be installed again", func() {
		for _, block := range commands("Upgrade and removal") {
			run(block)
		}
		Expect(admin.Kubectl("get", "deployments,services,serviceaccounts,roles", "--namespace="+namespace, "--output=name")).
			NotTo(ContainSubstring("forgeplane"))
		Expect(admin.Kubectl("get", "persistentvolumeclaims", "--namespace="+namespace, "--output=name")).
			To(And(ContainSubstring("forgeplane-repositories"), ContainSubstring("forgeplane-activity"), ContainSubstring("forgeplane-blobs"), ContainSubstring("forgeplane-registry")))
		admin.Kubectl("get", "namespace", "forgeplane-home")
		admin.Kubectl("get", "repositorystorage", "default")
		run(commands("Install")[0])
	})
})
