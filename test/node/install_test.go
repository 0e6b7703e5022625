package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/suite"
)

// first is the project of the first push. In "make run", it is imported from the checkout.
const first = `
apiVersion: v1
kind: Namespace
metadata: {name: forgeplane}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Group
metadata: {name: forgeplane, namespace: forgeplane}
spec: {path: forgeplane, visibility: Public}
---
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: forgeplane, namespace: forgeplane}
spec: {path: forgeplane, groupRef: {name: forgeplane}, visibility: Public}
`

// forge is Forgeplane on a node, for its administrator.
type forge struct {
	host string // address of the Service
	git  string // with the credentials
}

// signIn signs the administrator in with the command in the notes of Helm.
func (n *node) signIn(notes string) forge {
	GinkgoHelper()
	command := regexp.MustCompile(`(?m)^ {2}(kubectl .*secret/.*)$`).FindStringSubmatch(notes)
	Expect(command).NotTo(BeNil(), notes)
	token := n.run(command[1])
	host := n.run("kubectl get service forgeplane --output=jsonpath={.spec.clusterIP}" + in)
	file := filepath.Join(n.user.Space(), "credentials")
	Expect(os.WriteFile(file, fmt.Appendf(nil, "http://root:%s@%s\n", token, host), 0o600)).To(Succeed())
	return forge{host: host, git: "git -c credential.helper='store --file " + file + "'"}
}

// url is the address of the first project.
func (f forge) url() string { return "http://" + f.host + "/forgeplane/forgeplane.git" }

// pushFirst declares the first project and pushes the checkout to it.
func (n *node) pushFirst(f forge) {
	GinkgoHelper()
	n.run("kubectl apply --filename=- <<END\n" + first + "END\nkubectl wait --for=condition=Ready --timeout=60s project/forgeplane --namespace=forgeplane")
	n.run(f.git + " push --quiet " + f.url() + " HEAD:refs/heads/main")
}

var _ = Describe("A Helm user with an empty cluster", Ordered, suite.Soak, func() {
	var (
		n     *node
		forge forge
	)

	BeforeAll(func() {
		n = startNode(filepath.Join(checkout.Data(), "image", "oci"))
	})

	AfterEach(func() { n.explain() })

	It("has a forge that accepts a push after one command", func() {
		begun := time.Now()
		notes := n.run(commands("docs/install.md", "Install")[0].text + " --wait")
		installed := time.Since(begun)
		forge = n.signIn(notes)
		n.pushFirst(forge)
		measured("from helm install to the end of its wait", "%.1f s", installed.Seconds())
		measured("from helm install to the first push", "%.1f s", time.Since(begun).Seconds())

		var size int64
		blobs, err := filepath.Glob(filepath.Join(checkout.Data(), "image", "oci", "blobs", "sha256", "*"))
		Expect(err).NotTo(HaveOccurred())
		for _, blob := range blobs {
			info, err := os.Stat(blob)
			Expect(err).NotTo(HaveOccurred())
			size += info.Size()
		}
		measured("the image, compressed", "%.1f MB", float64(size)/1e6)
	})

	It("has what the documentation promises", func() {
		n.run("kubectl wait --for=condition=Available --timeout=60s apiservice/v4.rest.forgeplane.dev")
		n.run("kubectl wait --for=condition=Ready --timeout=60s repositorystorage/default")
		Expect(n.inPod("forgeplane --version")).To(ContainSubstring(n.user.Git("rev-parse", "--short=12", "HEAD")))
	})

	It("can test the installation", func() {
		Expect(n.run("helm test forgeplane" + in)).To(ContainSubstring("Succeeded"))
	})

	It("can take the first five minutes of the README", func() {
		all := strings.Split(n.run("kubectl kustomize config/samples"), "\n---\n")
		// The chart has its own administrator.
		samples := slices.DeleteFunc(all, func(sample string) bool { return strings.Contains(sample+"\n", "\n  name: root\n") })
		n.user.DoWith(strings.Join(samples, "\n---\n"), "nsenter", n.arguments("kubectl apply --filename=-")...)
		n.run("kubectl wait --for=condition=Ready --timeout=60s user/dana user/max accesstoken/dana")
		n.run("kubectl wait --for=condition=Ready --timeout=60s --namespace=acme project/website protectedbranch/website-releases membership/dana membership/max")
		environment := fmt.Sprintf("export FORGEPLANE_URL=http://%[1]s FORGEPLANE_REGISTRY=%[1]s\n", forge.host)
		Expect(os.WriteFile(filepath.Join(checkout.Data(), "env"), []byte(environment), 0o600)).To(Succeed())
		for _, b := range commands("README.md", "The first five minutes") {
			script := n.arguments(". .dev/env\n" + b.text)
			if b.refused {
				Expect(n.user.Fail("nsenter", script...)).To(ContainSubstring("release"))
				continue
			}
			n.user.Do("nsenter", script...)
		}
		const resident = `sh -c 'while read -r name size unit; do [ "$name" != VmRSS: ] || echo "$size"; done </proc/1/status'`
		measured("resident memory of the pod after the first five minutes", "%s kB", n.inPod(resident))
	})

	It("changes nothing in a second upgrade", func() {
		// When kube-apiserver repeats an apply after another manager's first one, it writes the metadata of the managers again, as in the policies.
		const state = "kubectl get deployments,services,configmaps,serviceaccounts,roles,clusterroles,crds,persistentvolumeclaims" + in +
			` --selector=app.kubernetes.io/name=forgeplane --output=jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'
kubectl get validatingadmissionpolicies,repositorystorages --output=jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.generation}{"\n"}{end}'`
		const pods = "kubectl get pods --selector=app.kubernetes.io/component=all --output=jsonpath='{.items[*].metadata.uid}'" + in
		before, running := n.run(state), n.run(pods)
		Expect(before).To(ContainSubstring("Deployment forgeplane-all"))
		n.run(commands("docs/upgrade.md", "Upgrade")[0].text + " --wait")
		Expect(strings.Split(n.run(state), "\n")).To(HaveExactElements(strings.Split(before, "\n")))
		Expect(n.run(pods)).To(Equal(running))
		Expect(n.run("helm get manifest forgeplane" + in + " | kubectl diff --server-side --force-conflicts --filename=-")).To(BeEmpty())
	})

	It("can remove everything", func() {
		n.run("kubectl delete namespace acme forgeplane --timeout=120s")
		for _, b := range commands("docs/uninstall.md", "Remove everything") {
			n.run(b.text)
		}
		Expect(n.run("kubectl get namespaces,crds,clusterroles,apiservices --output=name")).NotTo(ContainSubstring("forgeplane"))
	})
})
