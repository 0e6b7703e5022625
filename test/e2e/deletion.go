package e2e

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/rest"
)

var _ = Describe("A deletion", Ordered, func() {
	var attic team
	var head string

	BeforeAll(func() {
		attic = newTeam("attic")
		head = attic.start().Git("rev-parse", "HEAD")
	})

	// project declares another project, with further lines of its spec, and returns its repository with a commit in it.
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

	It("removes the repository of a project if the policy says so", func() {
		repository := project("gone", "deletionPolicy: Delete")
		attic.kubectl("delete", "project", "gone", "--timeout=60s")
		Expect(repository).NotTo(BeADirectory())
	})

	// left returns the names of the retained repositories of the team.
	left := func() []string {
		GinkgoHelper()
		var names []string
		for _, one := range list("retainedrepository", client.MatchingFields{"spec.project.namespace": "attic"}) {
			names = append(names, fill(&one, "{.spec.project.name}"))
		}
		return names
	}

	It("retains the repository of a project by default, and the same declaration gets it back with its id", func() {
		repository := project("kept", "")
		id := attic.show("project/kept", "{.spec.id}")
		attic.kubectl("delete", "project", "kept", "--timeout=60s")
		Expect(attic.as("max").Fail("git", "ls-remote", attic.url("kept"))).To(ContainSubstring("could not be found"))
		admin.Git("--git-dir="+repository, "fsck", "--full", "--strict")
		Expect(left()).To(ConsistOf("kept"))
		Expect(admin.Kubectl("get", "retainedrepositories")).To(MatchRegexp(`(?m)attic +kept +` + id + ` +attic/kept +default`))
		Expect(project("kept", "")).To(Equal(repository))
		Expect(attic.show("project/kept", "{.spec.id} {.status.id}")).To(Equal(id + " " + id))
		clone := attic.as("max").Clone(attic.url("kept"))
		Expect(clone.Git("rev-parse", "HEAD")).To(Equal(head))
		clone.Commit("more.txt", "More.\n")
		clone.MustPush("main")
		Eventually(left).WithPolling(polling).Should(BeEmpty())
		dana := attic.as("dana").Clone(attic.url("kept"))
		dana.Commit("less.txt", "Less.\n")
		Expect(dana.RefusedPush("main")).To(ContainSubstring("protected"), "it is protected again")
	})

	It("removes no content if metadata.name of the project has changed, and the new project says how to get the repository", func() {
		repository := project("before", "")
		renamed := func(decision string) {
			GinkgoHelper()
			attic.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: after, namespace: TEAM}
spec:
  path: before
  groupRef: {name: TEAM}
  ` + decision + "\n")
		}
		says := func(part string) string {
			GinkgoHelper()
			return attic.show("project/after", `{.status.conditions[?(@.type=="Ready")].`+part+`}`)
		}
		renamed("")
		Eventually(says).WithArguments("reason").WithPolling(polling).Should(Equal("AlreadyExists"))
		attic.kubectl("delete", "project", "before", "--timeout=60s")
		Eventually(says).WithArguments("reason").WithPolling(polling).Should(Equal("RepositoryRetained"))
		Expect(says("message")).To(And(ContainSubstring("the deleted project before has left a repository"), ContainSubstring("adoptRepository")))
		admin.Git("--git-dir="+repository, "fsck", "--full", "--strict")
		Expect(admin.Git("--git-dir="+repository, "rev-parse", "main")).To(Equal(head))
		renamed("adoptRepository: before")
		attic.waitReady("project/after")
		Expect(attic.as("max").Clone(attic.url("before")).Git("rev-parse", "HEAD")).To(Equal(head))
		Eventually(left).WithPolling(polling).Should(BeEmpty())
	})

	It("over REST keeps declared objects, and removes objects that were created over REST", func() {
		declared := project("shelf", "")
		root := throughKubernetes()
		made := rest.Must[struct {
			ID int `json:"id"`
		}](root, http.StatusCreated, "POST /projects", fmt.Sprintf(`{"path":"box","namespace_id":%s}`, attic.show("group/attic", "{.spec.id}")))
		attic.waitReady("project")
		box := repositoryOf("attic", attic.kubectl("get", "project", fmt.Sprintf("--field-selector=spec.id=%d", made.ID), "--output=jsonpath={.items[0].metadata.name}"))
		Expect(root.Status(fmt.Sprintf("DELETE /projects/%d", made.ID))).To(Equal(http.StatusAccepted))
		Expect(root.Status("DELETE /projects/attic%2Fshelf")).To(Equal(http.StatusAccepted))
		Eventually(box).WithPolling(polling).ShouldNot(BeADirectory())
		Eventually(left).WithPolling(polling).Should(ConsistOf("shelf"))
		Expect(declared).To(BeADirectory())
	})

	It("purges the repository if it deletes the retained repository", func() {
		repository := project("trash", "")
		attic.kubectl("delete", "project", "trash", "--timeout=60s")
		Expect(repository).To(BeADirectory())
		admin.Kubectl("delete", "retainedrepositories", "--field-selector=spec.project.namespace=attic", "--timeout=60s")
		Expect(repository).NotTo(BeADirectory())
		Expect(left()).To(BeEmpty())
	})

	// The discovery of the REST API is a part of the deletion of a namespace.
	It("is not delayed if it deletes a namespace, and each repository is removed or retained according to its policy", func() {
		gone := []string{project("first", "deletionPolicy: Delete"), project("second", "deletionPolicy: Delete")}
		kept := []string{project("third", "deletionPolicy: Retain"), repositoryOf("attic", "app")}
		door := throughKubernetes()
		Expect(door.Status("GET /projects/attic%2Fapp")).To(Equal(http.StatusOK))
		begun := time.Now()
		admin.Kubectl("delete", "namespace", "attic", "--timeout=60s")
		report("namespace with projects deleted after", time.Since(begun))
		Expect(door.Status("GET /projects/attic%2Fapp")).To(Equal(http.StatusNotFound))
		for _, repository := range gone {
			Expect(repository).NotTo(BeADirectory())
		}
		for _, repository := range kept {
			admin.Git("--git-dir="+repository, "fsck", "--full", "--strict")
			Expect(admin.Git("--git-dir="+repository, "rev-parse", "main")).To(Equal(head))
		}
		for _, object := range every() {
			Expect(object.GetNamespace()).NotTo(Equal("attic"), object.GetName())
		}
		Expect(left()).To(ConsistOf("third", "app", "kept", "after"))
	})
})
