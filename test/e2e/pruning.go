package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/installation"
	"github.com/forgeplane/forgeplane/test/soak"
	"github.com/forgeplane/forgeplane/test/suite"
)

var _ = Describe("Declared settings", Ordered, func() {
	var press team
	BeforeAll(func() {
		press = newTeam("press")
		press.start()
	})

	// declare applies memberships of the project and prunes all others that it has applied before, as a GitOps tool does with those in Git.
	declare := func(users ...string) {
		GinkgoHelper()
		var manifests []string
		for _, user := range users {
			manifests = append(manifests, strings.NewReplacer("TEAM", press.name, "USER", user).Replace(`
apiVersion: forgeplane.dev/v1alpha1
kind: Membership
metadata: {name: writer-USER, namespace: TEAM, labels: {tool: press}}
spec: {projectRef: {name: app}, userRef: {name: TEAM-USER}, role: Maintainer}
`))
		}
		admin.DoWith(strings.Join(manifests, "---"), "kubectl", "apply", "--namespace=press", "--prune", "--selector=tool=press",
			"--prune-allowlist=forgeplane.dev/v1alpha1/Membership", "--filename=-")
	}

	It("have no owner, and take effect at once when they are removed or pruned", func() {
		declare("dana", "otto")
		press.waitReady("memberships")
		Expect(press.kubectl("get", "memberships", "--output=jsonpath={.items[*].metadata.ownerReferences}")).To(BeEmpty())
		otto, dana := press.clone("otto"), press.clone("dana")
		expectAccepted("a membership is declared", pushOf(otto, "main"))
		declare("dana")
		Expect(press.kubectl("get", "memberships", "--output=name")).NotTo(ContainSubstring("otto"))
		expectRefused("a membership is pruned", pushOf(otto, "main"), "could not be found")
		expectAccepted("a membership stays", pushOf(dana, "next"))
		press.kubectl("delete", "membership", "writer-dana")
		dana.Git("fetch", "--quiet")
		dana.Git("reset", "--quiet", "--hard", "origin/main")
		expectRefused("a membership is deleted", pushOf(dana, "main"), "protected")
	})

	It("stay when their project is deleted, and are in force again for another one of the name", func() {
		declare("otto")
		press.waitReady("membership/writer-otto")
		press.patch("project/app", `{"spec":{"deletionPolicy":"Delete"}}`)
		press.kubectl("delete", "project", "app", "--timeout=60s")
		press.wait("membership/writer-otto", reason, "ReferenceNotFound")
		press.apply(teamManifests)
		press.waitReady("project/app", "membership/writer-otto")
	})
})

// expectUnwritten expects that something writes no object of a namespace.
func expectUnwritten(namespace string, do func()) {
	GinkgoHelper()
	written := func() map[string]string {
		all := map[string]string{}
		for _, o := range slices.Concat(every(client.InNamespace(namespace)), secrets(namespace)) {
			if o.GetNamespace() == namespace { // a storage counts new repositories in its own time
				all[o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
			}
		}
		return all
	}
	// A status may still follow an earlier change, so it must write nothing once.
	Eventually(func(g Gomega) {
		before := written()
		do()
		g.Consistently(written).WithTimeout(500 * time.Millisecond).WithPolling(100 * time.Millisecond).Should(Equal(before))
	}).WithPolling(polling).Should(Succeed())
}

var _ = Describe("A whole team in one file", Ordered, func() {
	const file = "config/samples/team/bakery.yaml"
	var bakery team
	var head string

	// found returns the kinds and names of all objects of the team that are declared.
	found := func() (names []string) {
		for _, o := range every(client.InNamespace("bakery")) { // cluster-scoped objects too
			if o.GetNamespace() == "bakery" && len(o.GetOwnerReferences()) == 0 {
				names = append(names, o.GetKind()+" "+o.GetName())
			}
		}
		return names
	}
	// expectReady expects that everything that tenants can declare is ready, and returns it.
	expectReady := func() []string {
		GinkgoHelper()
		for _, kind := range kinds() {
			if slices.Contains(kind.Spec.Names.Categories, "forge") {
				bakery.waitReady(kind.Spec.Names.Singular)
			}
		}
		return found()
	}
	// baker runs kubectl with the rights of a tenant.
	baker := func(args ...string) {
		GinkgoHelper()
		admin.Kubectl(append(args, "--filename="+file, "--as=baker")...)
	}
	admit := func() {
		GinkgoHelper()
		admin.Kubectl("create", "namespace", "bakery")
		admin.Kubectl("create", "rolebinding", "baker", "--namespace=bakery", "--clusterrole=edit", "--user=baker")
		Eventually(func() error {
			_, err := admin.Try("kubectl", "apply", "--server-side", "--dry-run=server", "--filename="+file, "--as=baker")
			return err
		}).WithPolling(polling).Should(Succeed())
	}

	BeforeAll(func() {
		bakery = team{"bakery"}
		waitReady("", "user/max", "user/dana")
		admit()
	})

	It("is declared with the rights of a tenant", func() {
		baker("apply", "--server-side")
		Expect(expectReady()).To(HaveLen(14))
		clone := as("max", "max-token").Clone(bakery.url("shop"))
		clone.Commit("README.md", "The shop.\n")
		clone.MustPush("main")
		head = clone.Git("rev-parse", "HEAD")
	})

	It("is not written again when the same file is applied again", func() {
		expectUnwritten("bakery", func() { baker("apply", "--server-side") })
	})

	// prunes expects that a tool applies the team, prunes it with the project and all of its settings at once, and loses nothing.
	prunes := func(set func(manifests string)) {
		GinkgoHelper()
		declared := expectReady()
		text, err := os.ReadFile(filepath.Join(checkout.Dir, file))
		Expect(err).NotTo(HaveOccurred())
		group, _, _ := strings.Cut(string(text), "\n---\n")
		for range soak.Times(1, 3) {
			set(string(text))
			Expect(expectReady()).To(ConsistOf(declared))
			set(group)
			Eventually(found).Should(ConsistOf("Group bakery"))
		}
		set(string(text))
		Expect(expectReady()).To(ConsistOf(declared))
		Expect(as("max", "max-token").Clone(bakery.url("shop")).Git("rev-parse", "HEAD")).To(Equal(head))
		expectUnwritten("bakery", func() { set(string(text)) })
	}

	It("can be pruned by an apply set", suite.Soak, func() {
		prunes(func(manifests string) {
			admin.With("KUBECTL_APPLYSET=true").DoWith(manifests, "kubectl", "apply", "--server-side", "--prune", "--applyset=bakery", "--namespace=bakery", "--filename=-")
		})
	})

	DescribeTable("can be synchronized and pruned by", suite.Soak, func(ctx SpecContext, tool string) {
		program := installation.GitOps(ctx)
		prunes(func(manifests string) {
			done := admin.DoWith(manifests, program, "-namespace=bakery", tool)
			Expect(done).NotTo(ContainSubstring("OutOfSync"))
		})
	}, Entry("the engine of Argo CD", "argocd"), Entry("the apply of Flux", "flux"))

	It("can be pruned as a whole and applied again, and loses nothing", func() {
		declared := expectReady()
		for range soak.Times(1, 3) {
			baker("delete", "--cascade=foreground") // Argo CD prunes in this way
			Expect(found()).To(BeEmpty())
			baker("apply", "--server-side")
			Expect(expectReady()).To(ConsistOf(declared))
		}
		Expect(as("max", "max-token").Clone(bakery.url("shop")).Git("rev-parse", "HEAD")).To(Equal(head))
	})

	It("keeps all settings of a project that is deleted and applied again in one run", func() {
		declared := expectReady()
		for range soak.Times(1, 3) {
			baker("replace", "--force")
			Expect(expectReady()).To(ConsistOf(declared))
		}
	})

	It("is deleted with its namespace and declared again, and an administrator gives it back the repository", func() {
		declared := expectReady()
		admin.Kubectl("delete", "namespace", "bakery", "--timeout=60s")
		Expect(found()).To(BeEmpty())
		admit()
		baker("apply", "--server-side")
		bakery.wait("project/shop", reason, "RepositoryRetained")
		left := list("retainedrepository", client.MatchingFields{"spec.project.namespace": "bakery"})
		Expect(left).To(HaveLen(1))
		patch("", "retainedrepository/"+left[0].GetName(), `{"spec":{"adoptBy":{"namespace":"bakery","name":"shop"}}}`)
		Expect(expectReady()).To(ConsistOf(declared))
		Expect(as("max", "max-token").Clone(bakery.url("shop")).Git("rev-parse", "HEAD")).To(Equal(head))
		admin.Kubectl("delete", "namespace", "bakery", "--timeout=60s")
	})
})
