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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/suite"
)

const account = "system:serviceaccount:" + namespace + ":forgeplane"

// section returns the text of a section of a page in docs.
func section(page, heading string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout.Dir, "docs", page))
	Expect(err).NotTo(HaveOccurred())
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	Expect(found).To(BeTrue(), heading)
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// commands returns the commands in a section of a page in docs, block by block.
func commands(page, heading string) (all []string) {
	GinkgoHelper()
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(section(page, heading), -1) {
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

var _ = Describe("An installation with the commands of the documentation", Ordered, func() {
	var (
		cluster *controlplane.ControlPlane
		node    *node
		// notes are the notes of Helm after the installation.
		notes string
		forge *process.Process
	)

	BeforeAll(func(ctx context.Context) {
		var err error
		cluster, err = controlplane.Start(ctx, controlplane.Options{Directory: filepath.Join(GinkgoT().TempDir(), "control-plane"), Ephemeral: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
		before := admin
		DeferCleanup(func() { admin = before })
		admin = admin.With("KUBECONFIG=" + cluster.Kubeconfig())
		node = startNode(cluster)
	})

	AfterAll(func() {
		if forge != nil {
			Expect(forge.Kill()).To(Succeed())
		}
	})

	// start starts the process of the Deployment, and returns its log.
	start := func() (log string) {
		GinkgoHelper()
		identity, err := cluster.Identity(account, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
		Expect(err).NotTo(HaveOccurred())
		space := admin.Space()
		kubeconfig := filepath.Join(space, "kubeconfig")
		Expect(controlplane.WriteKubeconfig(kubeconfig, identity)).To(Succeed())
		Expect(admin.Field(".spec.template.spec.serviceAccountName", "deployment", "forgeplane-all", "--namespace="+namespace)).To(Equal("forgeplane"))
		given := strings.Split(admin.Field(`range .spec.template.spec.containers[0].args[*]}{@}{"\n"}{end`, "deployment", "forgeplane-all", "--namespace="+namespace), "\n")
		ports := installation.FreePorts()
		node.url = fmt.Sprintf("http://127.0.0.1:%d", ports.HTTP)
		// If a flag is given twice, the last one counts. The paths and addresses differ on this machine, where kube-apiserver reaches no Service.
		program := process.Program{
			Name: "forgeplane", Path: checkout.Program("forgeplane"), Dir: space, Log: filepath.Join(space, "log"),
			Args: append(slices.DeleteFunc(given, func(arg string) bool { return arg == "" }),
				"--kubeconfig="+kubeconfig, "--activity-database="+filepath.Join(space, "activity.db"), "--blobs="+filepath.Join(space, "blobs"), "--registry-storage="+filepath.Join(space, "registry"), "--runtime-dir="+filepath.Join(space, "run"),
				fmt.Sprintf("--http-address=127.0.0.1:%d", ports.HTTP), fmt.Sprintf("--tls-address=127.0.0.1:%d", ports.TLS),
				fmt.Sprintf("--health-address=127.0.0.1:%d", ports.Health)),
		}
		forge, err = process.Start(program)
		Expect(err).NotTo(HaveOccurred())
		Expect(forgeplane.Options{HealthPort: ports.Health}.AwaitReady(forge, patience.Wait)).To(Succeed(), func() string { return forge.Tail() })
		return program.Log
	}

	It("is accepted by the cluster, with a shard and an administrator", func() {
		notes = run(commands("install.md", "Install")[0])
		Expect(run("cat README.md")).To(ContainSubstring("\n" + commands("install.md", "Install")[0] + "\n"))
		mounted := admin.Field(".spec.template.spec.containers[0].volumeMounts[*].mountPath", "deployment", "forgeplane-all", "--namespace="+namespace)
		Expect(strings.Fields(mounted)).To(ContainElement(admin.Field(".spec.path", "repositorystorage", "default")))
		Expect(admin.Field(".spec.admin", "user", "root")).To(Equal("true"))
		// A cluster creates this account in each namespace.
		admin.Kubectl("create", "serviceaccount", "default", "--namespace="+namespace)
	})

	It("has pods that the restricted pod security standard admits", func() {
		admin.Kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
		for _, o := range render() {
			spec, found, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
			Expect(err).NotTo(HaveOccurred())
			if !found {
				continue
			}
			spec["serviceAccountName"] = "forgeplane"
			pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "try", "namespace": namespace}, "spec": spec}
			admin.DoWith(asJSON(pod), "kubectl", "create", "--dry-run=server", "--filename=-")
		}
	})

	It("has only fields that the cluster knows, with other values as well", func() {
		schemas := writeSchemas()
		for _, values := range []string{image, valuesFile(everything), valuesFile(operated)} {
			text := admin.Do("helm", template(values)...)
			// The kinds of others are not in the cluster.
			out := admin.DoWith(text, "kubeconform", "-strict", "-summary", "-skip=HTTPRoute,Certificate,ServiceMonitor", "-schema-location="+schemas)
			Expect(out).To(MatchRegexp(`Valid: [1-9].*Invalid: 0, Errors: 0`))
			admin.FailWith(strings.Replace(text, "\n  replicas:", "\n  replcias:", 1), "kubeconform", "-schema-location="+schemas, "-skip=HTTPRoute,Certificate,ServiceMonitor")
		}
	})

	It("does not change in a second upgrade", func() {
		before := admin.Kubectl("get", "deployments,services,configmaps,clusterroles,crds,validatingadmissionpolicies,persistentvolumeclaims,repositorystorages", "--namespace="+namespace,
			`--output=jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.labels}{"\n"}{end}`)
		run(commands("upgrade.md", "Upgrade")[0])
		manifest := admin.Do("helm", "get", "manifest", "forgeplane", "--namespace="+namespace)
		Expect(admin.DoWith(manifest, "kubectl", "diff", "--server-side", "--force-conflicts", "--filename=-")).To(BeEmpty())
		after := admin.Kubectl("get", "deployments,services,configmaps,clusterroles,crds,validatingadmissionpolicies,persistentvolumeclaims,repositorystorages", "--namespace="+namespace,
			`--output=jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.generation} {.metadata.labels}{"\n"}{end}`)
		Expect(after).To(Equal(before))
	})

	It("gets its administrator in an upgrade only if it has none, as after a failed installation", suite.Soak, func() {
		upgrade := commands("upgrade.md", "Upgrade")[0]
		admin.Kubectl("patch", "user", "root", "--type=merge", `--patch={"spec":{"name":"Somebody"}}`)
		run(upgrade)
		Expect(admin.Field(".spec.name", "user", "root")).To(Equal("Somebody"))
		admin.Kubectl("delete", "user,accesstoken", "root")
		run(upgrade)
		Expect(admin.Field(".spec.admin", "user", "root")).To(Equal("true"))
		Expect(admin.Field(".spec.secretRef.name", "accesstoken", "root")).To(Equal("forgeplane-root-token"))
	})

	It("starts with the arguments of its Deployment and the permissions of the chart", func() {
		log := start()
		By("using the permissions")
		admin.Kubectl("wait", "--for=create", "--timeout=60s", "apiservice/v4.rest.forgeplane.dev")
		Expect(admin.Field(".spec.service.name", "apiservice", "v4.rest.forgeplane.dev")).To(Equal("forgeplane-apiserver"))
		admin.Kubectl("wait", "--for=condition=Ready=False", "--timeout=60s", "repositorystorage/default")
		Expect(admin.Field(".status.conditions[0].message", "repositorystorage", "default")).To(ContainSubstring("check that the volume is mounted"))
		text, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring("forbidden"))
	})

	It("shows the token of the administrator with the command of its notes", func() {
		command := regexp.MustCompile(`(?m)^ {2}(kubectl .*secret/.*)$`).FindStringSubmatch(notes)
		Expect(command).NotTo(BeNil(), notes)
		token := run(command[1])
		Expect(token).To(MatchRegexp(`^\S{20,}$`))
		file := filepath.Join(admin.Space(), "token")
		Expect(os.WriteFile(file, []byte(token), 0o600)).To(Succeed())
		admin.Apply("{apiVersion: forgeplane.dev/v1alpha1, kind: RepositoryStorage, metadata: {name: here}, spec: {path: " + admin.Space() + "}}")
		admin.WaitReady("repositorystorage/here")
		Expect(admin.Do(checkout.Program("forgeplane"), "check", "--url="+node.url, "--token-file="+file)).To(ContainSubstring("accepts pushes"))
		Expect(os.WriteFile(file, []byte(token+"x"), 0o600)).To(Succeed())
		Expect(admin.Fail(checkout.Program("forgeplane"), "check", "--url="+node.url, "--token-file="+file)).To(ContainSubstring("401 Unauthorized"))
	})
	It("serves the first project", func() {
		for _, block := range commands("install.md", "The first project") {
			run(block)
		}
	})

	It("passes its own test", func() {
		Expect(run("helm test forgeplane --namespace=" + namespace)).To(ContainSubstring("Succeeded"))
		Expect(admin.Kubectl("get", "pods", "--namespace="+namespace, "--output=name")).To(BeEmpty(), "helm uninstall would leave the pod")
	})

	It("accepts other values", suite.Soak, func() {
		for _, block := range commands("helm.md", "Values") {
			run(block)
		}
		Expect(admin.Field(".spec.template.spec.containers[0].args", "deployment", "forgeplane-all", "--namespace="+namespace)).
			To(ContainSubstring("--allow-private-targets=10.0.0.0/8,git.internal"))
		for _, block := range commands("install.md", "TLS") {
			run(block)
		}
		Expect(admin.Field(".spec.rules[0].host", "ingress", "forgeplane", "--namespace="+namespace)).To(Equal("forge.example"))
		for _, block := range commands("install.md", "Several replicas") {
			run(block)
		}
		Expect(admin.Kubectl("get", "deployments", "--namespace="+namespace, "--output=name")).
			To(Equal("deployment.apps/forgeplane-apiserver\ndeployment.apps/forgeplane-manager"))
	})

	It("is removed except for what holds data, even if a server was killed", func() {
		Expect(forge.Kill()).To(Succeed())
		admin.Kubectl("get", "apiservice", "v4.rest.forgeplane.dev")
		for _, block := range commands("uninstall.md", "Remove the release") {
			run(block)
		}
		Expect(admin.Kubectl("get", "apiservices", "--output=name")).NotTo(ContainSubstring("rest.forgeplane.dev"))
		Expect(admin.Kubectl("get", "deployments,services,serviceaccounts,roles,jobs", "--namespace="+namespace, "--output=name")).
			NotTo(ContainSubstring("forgeplane"))
		Expect(admin.Kubectl("get", "clusterroles,clusterrolebindings", "--output=name")).NotTo(ContainSubstring("forgeplane"))
		Expect(admin.Kubectl("get", "persistentvolumeclaims", "--namespace="+namespace, "--output=name")).To(ContainSubstring("forgeplane-repositories"))
		stays := section("uninstall.md", "What stays")
		for name := range strings.FieldsSeq(admin.Field(".items[*].metadata.name", "secrets,configmaps,pods,persistentvolumeclaims", "--namespace="+namespace)) {
			if name != "forgeplane-activity" { // the administrator created it for "Several replicas"
				Expect(stays).To(ContainSubstring("`" + name + "`"))
			}
		}
		admin.Kubectl("get", "namespace", "forgeplane-home")
		admin.Kubectl("get", "repositorystorage", "default")
	})

	It("can be installed again, and removed with everything", suite.Soak, func() {
		run(commands("install.md", "Install")[0])
		start()
		steps := commands("uninstall.md", "Remove everything")
		run(steps[0])
		Expect(forge.Kill()).To(Succeed())
		// The control plane has no controller that releases claims.
		admin.Kubectl("patch", "persistentvolumeclaim", "forgeplane-repositories", "--namespace="+namespace, "--type=json", `--patch=[{"op":"remove","path":"/metadata/finalizers"}]`)
		run(steps[1])
		Expect(admin.Kubectl("get", "crds,clusterroles", "--output=name")).NotTo(ContainSubstring("forgeplane"))
		admin.Kubectl("wait", "--for=delete", "--timeout=60s", "namespace/forgeplane-home", "namespace/"+namespace)
	})

	It("is removed with everything without Helm", suite.Soak, func() {
		run("kubectl apply --server-side --kustomize config/default")
		admin.Kubectl("patch", "persistentvolumeclaim", "forgeplane-repositories", "--namespace="+namespace, "--type=json", `--patch=[{"op":"remove","path":"/metadata/finalizers"}]`)
		for _, block := range commands("uninstall.md", "Without Helm") {
			run(block)
		}
		Expect(admin.Kubectl("get", "crds,clusterroles,validatingadmissionpolicies,apiservices,namespaces", "--output=name")).NotTo(ContainSubstring("forgeplane"))
	})
})
