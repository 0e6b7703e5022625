package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/suite"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// The specs tell the story of a team from its first object to its last. They use the samples in the way of a new user.
var _ = Describe("The samples", Ordered, func() {
	var acme team
	var dana, max terminal.Terminal
	const protection = "protectedbranch/website-releases"

	BeforeAll(func() {
		acme = team{"acme"}
		writeEverySample()
	})

	It("are applied and become Ready", func() {
		admin.Kubectl("apply", everySample, "--server-side")
		// Other specs have tokens that are not Ready on purpose.
		waitReady("", "repositorystorage/default", "repositorystorage/fast", "user/root", "user/max", "user/dana",
			"accesstoken/root", "accesstoken/max", "accesstoken/dana")
		acme.waitReady("group", "project", "membership", "deploykey", "protectedbranch", "triggertoken", "bottoken", "badge", "jobtokenscope", "remotemirror", "label",
			"registrycleanup", "storagemove", "variable")
		acme.wait("storagemove/website-to-fast", "{.status.state}", "finished")
		acme.wait("project/website", "{.status.storage}", "fast")
	})

	DescribeTable("are not written again when the same YAML is applied again", func(options ...string) {
		apply := append([]string{"apply", everySample}, options...)
		admin.Kubectl(apply...)
		before := versions()
		Expect(before).To(HaveLen(29))
		for line := range strings.SplitSeq(admin.Kubectl(apply...), "\n") {
			Expect(line).To(MatchRegexp(" (unchanged|serverside-applied)$"))
		}
		Consistently(versions).WithTimeout(500 * time.Millisecond).WithPolling(100 * time.Millisecond).Should(Equal(before))
	},
		Entry("server-side", "--server-side"),
		Entry("client-side", suite.Soak),
	)

	It("let only their members clone the project", func() {
		url := acme.url("website")
		dana, max = as("dana", "dana-token").Clone(url), as("max", "max-token").Clone(url)
		Expect(admin.Fail("git", "ls-remote", url)).To(ContainSubstring("could not read Username"))
	})

	It("accept a push of the maintainer to the default branch, and a push of a developer to a feature branch", func() {
		max.Commit("README.md", "The website.\n")
		max.MustPush("main")
		dana.Git("fetch", "--quiet")
		dana.Git("reset", "--quiet", "--hard", "origin/main")
		id := dana.Commit("feature.txt", "New.\n")
		dana.MustPush("feature")
		Expect(max.Git("ls-remote", "origin", "refs/heads/feature")).To(HavePrefix(id))
	})

	It("show the push in the status of the project", func() {
		id := max.Git("rev-parse", "HEAD")
		acme.wait("project/website", "{.status.headCommit}", id)
	})

	It("refuse a push of the developer to the default branch, and say why", func() {
		screen := dana.RefusedPush("main")
		Expect(screen).To(ContainSubstring("remote: The push is refused, and nothing was changed.\n"))
		Expect(screen).To(MatchRegexp(`remote: Branch "main" is protected by "main" \(acme/website-main-[0-9a-f]+\): ` +
			`only Maintainers may push to it. You have the Developer role.\n`))
		Expect(screen).To(ContainSubstring("! [remote rejected] HEAD -> main (pre-receive hook declined)\n"))
	})

	It("refuse to rewrite the default branch, and say why", func() {
		before := max.Git("ls-remote", "origin", "refs/heads/main")
		max.Git("commit", "--quiet", "--amend", "--message", "Something else")
		screen := max.RefusedPush("main", "--force")
		Expect(screen).To(ContainSubstring(`and nobody may rewrite its history. Fetch it, rebase or merge, and push without force.`))
		Expect(max.Git("ls-remote", "origin", "refs/heads/main")).To(Equal(before))
		max.Git("reset", "--quiet", "--hard", "origin/main")
	})

	It("refuse to delete the default branch, and say why", func() {
		screen := terminal.Readable(max.Fail("git", "push", "origin", ":refs/heads/main"))
		Expect(screen).To(ContainSubstring("so Git cannot delete it. Users who can unprotect it can delete it through the API.\n"))
		Expect(max.Git("ls-remote", "origin", "refs/heads/main")).NotTo(BeEmpty())
	})

	It("refuse every push to a branch that matches a wildcard", func() {
		for _, branch := range []string{"release/1.0", "release/2/hotfix"} {
			Expect(max.RefusedPush(branch)).To(ContainSubstring(fmt.Sprintf(
				`remote: Branch %q is protected by "release/*" (acme/website-releases): no one may push to it. You have the Maintainer role.`, branch)))
		}
		max.MustPush("released")
	})

	It("let developers push within a second of a change of the protection, and no longer", func() {
		try := pushOf(dana, "release/1.0")
		_, err := try()
		Expect(err).To(HaveOccurred())
		edit := func(from, to string) {
			GinkgoHelper()
			file := filepath.Join(checkout.Dir, "config", "samples", "protectedbranch.yaml")
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring(from))
			Expect(os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o644)).To(Succeed())
			admin.Kubectl("apply", "--filename="+file)
		}
		edit("role: NoOne", "role: Developer")
		expectAccepted("developers may push to release/*", try)
		acme.waitReady(protection)
		Expect(acme.show(protection, "{.status.push[*].description}")).To(Equal("Developers + Maintainers"))
		acme.wait(protection, "{.status.matchedBranches[*]}", "release/1.0")
		edit("role: Developer", "role: NoOne")
		expectRefused("nobody may push to release/*", try, "no one may push to it")
	})

	It("accept a push within a second of the deletion of the protection", func() {
		try := pushOf(dana, "release/1.0")
		acme.kubectl("delete", protection)
		expectAccepted("the protection is deleted", try)
	})

	It("leave no repository behind when the project is deleted", func() {
		repository := repositoryOf("acme", "website")
		Expect(repository).To(BeADirectory())
		begun := time.Now()
		acme.kubectl("delete", "project", "website", "--timeout=60s")
		report("project deleted after", time.Since(begun))
		Expect(repository).NotTo(BeADirectory())
		Expect(dana.Fail("git", "fetch")).To(ContainSubstring("could not be found or you don't have permission to view it"))
		Eventually(acme.list).WithArguments("protectedbranch").WithPolling(polling).
			Should(BeEmpty(), "what the project created goes with it")
		for _, object := range []string{
			"deploykey/website-ci", "triggertoken/website-nightly", "bottoken/website-release", "badge/website-build", "jobtokenscope/website",
			"label/website-bug", "variable/website-deploy-token",
		} {
			acme.wait(object, reason, "ReferenceNotFound")
		}
	})

	It("are deleted together with their namespace", func() {
		begun := time.Now()
		admin.Kubectl("delete", "namespace", "acme", "--timeout=60s")
		report("namespace deleted after", time.Since(begun))
	})
})

// everySample is the option of kubectl for all samples.
const everySample = "--kustomize=config"

// writeEverySample writes a kustomization of all samples into the checkout: config/samples leaves out those that need volumes. The shard "default"
// has the path of its volume here.
func writeEverySample() {
	GinkgoHelper()
	text := fmt.Sprintf(`
resources: [samples, samples/repositorystorage.yaml, samples/storagemove.yaml]
patches:
- target: {kind: RepositoryStorage, name: default}
  patch: '[{"op": "replace", "path": "/spec/path", "value": %q}]'
`, show("", "repositorystorage/default", "{.spec.path}"))
	Expect(os.WriteFile(filepath.Join(checkout.Dir, "config", "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())
}

// versions returns the resourceVersions of all objects that the samples declare or cause. For the shard, whose status shows the free space of the
// disk, it returns everything but the status.
func versions() map[string]string {
	GinkgoHelper()
	all := map[string]string{"RepositoryStorage default": declaration(reference("", "repositorystorage/default"))}
	objects := slices.Concat(every(), secrets(forgeplane.Namespace), secrets("acme"))
	for _, object := range objects {
		of := strings.TrimSuffix(object.GetName(), "-token")
		if object.GetNamespace() == "acme" || slices.Contains([]string{"root", "max", "dana"}, of) {
			all[object.GetKind()+" "+object.GetName()] = object.GetResourceVersion()
		}
	}
	return all
}

// declaration returns an object without its status.
func declaration(o *unstructured.Unstructured) string {
	GinkgoHelper()
	Expect(api.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	delete(o.Object, "status")
	o.SetResourceVersion("")
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Subresource == "status" }))
	text, err := o.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// repositoryOf returns the directory of a project's repository.
func repositoryOf(namespace, project string) string {
	GinkgoHelper()
	storage := show(namespace, "project/"+project, "{.status.storage}")
	return filepath.Join(show("", "repositorystorage/"+storage, "{.spec.path}"), show(namespace, "project/"+project, "{.status.repositoryPath}"))
}
