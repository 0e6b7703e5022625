package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A deletion", Ordered, func() {
	var attic team
	var head string

	BeforeAll(func() {
		attic = newTeam("attic")
		head = attic.start().Git("rev-parse", "HEAD")
	})

	// project declares one more project, with further lines of its spec, and returns its repository with a commit in it.
	project := func(name string, spec string) string {
		GinkgoHelper()
		attic.apply(fmt.Sprintf(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: %s, namespace: TEAM}
spec:
  path: %[1]s
  groupRef: {name: TEAM}
  %s
`, name, spec))
		attic.waitReady("project/" + name)
		attic.clone("max").Git("push", "--quiet", attic.url(name), "HEAD:refs/heads/main")
		repository := repositoryOf("attic", name)
		Expect(admin.Git("--git-dir="+repository, "rev-parse", "main")).To(Equal(head))
		return repository
	}

	It("of a project takes the repository with it where the policy says so", func() {
		repository := project("gone", "deletionPolicy: Delete")
		attic.kubectl("delete", "project", "gone", "--timeout=60s")
		Expect(repository).NotTo(BeADirectory())
	})

	It("of a project leaves the repository where the policy says so, and a project of the same id finds it again", func() {
		repository := project("kept", "deletionPolicy: Retain")
		id := attic.kubectl("get", "project", "kept", "--output=jsonpath={.spec.id}")
		attic.kubectl("delete", "project", "kept", "--timeout=60s")
		Expect(attic.as("max").Fail("git", "ls-remote", attic.url("kept"))).To(ContainSubstring("could not be found"))
		admin.Git("--git-dir="+repository, "fsck", "--full", "--strict")
		Expect(project("kept", "id: "+id)).To(Equal(repository))
		Expect(attic.as("dana").Git("ls-remote", attic.url("kept"), "refs/heads/main")).To(HavePrefix(head))
	})

	It("of a namespace is not held up, and each repository goes or stays as its policy says", func() {
		gone := []string{project("first", ""), project("second", "deletionPolicy: Delete"), repositoryOf("attic", "app")}
		kept := project("third", "deletionPolicy: Retain")
		begun := time.Now()
		admin.Kubectl("delete", "namespace", "attic", "--timeout=60s")
		report("namespace with projects deleted after", time.Since(begun))
		for _, repository := range gone {
			Expect(repository).NotTo(BeADirectory())
		}
		admin.Git("--git-dir="+kept, "fsck", "--full", "--strict")
		Expect(admin.Git("--git-dir="+kept, "rev-parse", "main")).To(Equal(head))
		for _, object := range admin.List("forge", "--all-namespaces") {
			Expect(object.GetNamespace()).NotTo(Equal("attic"), object.GetName())
		}
	})
})
