package e2e

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/apiserver/v4/badges"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

var _ = Describe("A badge", Ordered, func() {
	const path = "/projects/mill%2Fapp/badges"
	const manifest = `
apiVersion: forgeplane.dev/v1alpha1
kind: Badge
metadata: {name: build, namespace: mill}
spec:
  projectRef: {name: app}
  name: Build
  linkURL: https://ci.example.com/%{project_path}
  imageURL: https://ci.example.com/%{project_title}/%{default_branch}.svg?%{commit_sha}
`
	var mill team
	var work terminal.Terminal
	var max rest.Client

	BeforeAll(func() {
		mill = newTeam("mill")
		work = mill.start()
		max = mill.rest("max")
	})

	list := func() []badges.Badge {
		GinkgoHelper()
		return rest.Must[[]badges.Badge](max, http.StatusOK, "GET "+path, "")
	}
	image := func(name string) func() string {
		return func() string { return mill.show("badge/"+name, "{.status.renderedImageURL}") }
	}

	It("that is applied is listed over REST, and not written when it is applied again", func() {
		admin.Apply(manifest)
		mill.waitReady("badge/build")
		all := expectShown[[]badges.Badge](max, path, HaveLen(1))
		Expect(all[0].Name).To(HaveValue(Equal("Build")))
		Expect(all[0].RenderedLinkURL).To(Equal("https://ci.example.com/mill/app"))
		Expect(all[0].RenderedImageURL).To(Equal("https://ci.example.com/app/main.svg?" + work.Git("rev-parse", "HEAD")))
		Expect(image("build")()).To(Equal(all[0].RenderedImageURL))
		Expect(mill.show("badge/build", "{.spec.id}")).To(Equal(fmt.Sprint(all[0].ID)))
		Expect(mill.show("badge/build", "{.metadata.ownerReferences[*].name}")).To(BeEmpty())

		version := func() string {
			return mill.show("badge/build", "{.metadata.resourceVersion}")
		}
		before := version()
		Expect(admin.Apply(manifest)).To(HaveSuffix(" unchanged"))
		Consistently(version).WithTimeout(quiet).WithPolling(quiet / 5).Should(Equal(before))
	})

	It("follows each push to the default branch, and the name of the project", func() {
		for _, text := range []string{"One.\n", "Two.\n"} {
			id := work.Commit("change.txt", text)
			work.MustPush("main")
			Eventually(image("build")).WithPolling(polling).Should(Equal("https://ci.example.com/app/main.svg?" + id))
			Expect(list()[0].RenderedImageURL).To(HaveSuffix(id))
		}
		mill.patch("project/app", `{"spec":{"name":"<Mill> & \"Co\""}}`)
		Eventually(image("build")).WithPolling(polling).Should(HavePrefix("https://ci.example.com/%3CMill%3E%20%26%20%22Co%22/main.svg?"))
		mill.waitReady("badge/build")
	})

	It("that was applied can be changed and removed over REST", func() {
		one := fmt.Sprintf("%s/%d", path, list()[0].ID)
		changed := rest.Must[badges.Badge](max, http.StatusOK, "PUT "+one, `{"link_url":"https://other.example.com/%{project_name}","name":null}`)
		Expect(changed.RenderedLinkURL).To(Equal("https://other.example.com/app"))
		Expect(mill.show("badge/build", "{.spec.linkURL}")).To(Equal(changed.LinkURL))
		Expect(mill.show("badge/build", "{.spec.name}")).To(BeEmpty())
		mill.wait("badge/build", "{.status.renderedLinkURL}", changed.RenderedLinkURL)
		Expect(max.Status("DELETE " + one)).To(Equal(http.StatusNoContent))
		Expect(mill.kubectl("get", "badges", "--output=name")).To(BeEmpty())
	})

	It("that was created over REST can be seen, changed and removed with kubectl", func() {
		made := rest.Must[badges.Badge](max, http.StatusCreated, "POST "+path, `{"link_url":"https://a.example.com","image_url":"https://a.example.com/%{project_id}"}`)
		name := mill.kubectl("get", "badges", "--output=name")
		mill.waitReady(name)
		Expect(mill.show(name, "{.spec.id} {.status.renderedImageURL}")).To(Equal(fmt.Sprint(made.ID, " ", made.RenderedImageURL)))
		mill.patch(name, `{"spec":{"name":"By hand"}}`)
		expectShown[[]badges.Badge](max, path, ConsistOf(HaveField("Name", HaveValue(Equal("By hand")))))
		mill.kubectl("delete", name)
		expectShown[[]badges.Badge](max, path, BeEmpty())
	})

	It("is shown by each project below its group, with the values of that project", func() {
		mill.apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: Badge
metadata: {name: everywhere, namespace: TEAM}
spec: {groupRef: {name: TEAM}, linkURL: "https://ci.example.com/%{group_name}/%{project_name}", imageURL: "https://ci.example.com/badge.svg"}
`)
		mill.waitReady("badge/everywhere")
		all := expectShown[[]badges.Badge](max, path, ConsistOf(And(HaveField("Kind", "group"), HaveField("RenderedLinkURL", "https://ci.example.com/mill/app"))))
		Expect(mill.show("badge/everywhere", "{.status.renderedLinkURL}")).To(Equal("https://ci.example.com/mill/%{project_name}"))
		Expect(max.Call(fmt.Sprintf("DELETE %s/%d", path, all[0].ID), "")).To(HaveField("Status", http.StatusNotFound))
		mill.kubectl("delete", "badge", "everywhere")
	})

	It("that is declared cannot be changed over REST if the project forbids that, and the answer names who declares it", func() {
		admin.DoWith(manifest, "kubectl", "apply", "--server-side", "--field-manager=argocd-controller", "--filename=-")
		mill.waitReady("badge/build")
		mill.patch("project/app", `{"spec":{"restWrites":"RefuseDeclared"}}`)
		one := fmt.Sprintf("%s/%d", path, expectShown[[]badges.Badge](max, path, ConsistOf(HaveField("Kind", "project")))[0].ID)
		// The deletion comes last: it would be accepted until the server knows of restWrites.
		for _, request := range []string{"PUT " + one, "DELETE " + one} {
			Eventually(func() rest.Answer { return max.Call(request, `{"name":"Mine"}`) }).WithPolling(polling).Should(And(
				HaveField("Status", http.StatusForbidden), HaveField("Body", MatchRegexp(`"message":"403 Forbidden - .*argocd-controller`))))
		}
		own := rest.Must[badges.Badge](max, http.StatusCreated, "POST "+path, `{"link_url":"https://a.example.com","image_url":"https://a.example.com"}`)
		rest.Must[badges.Badge](max, http.StatusOK, fmt.Sprintf("PUT %s/%d", path, own.ID), `{"name":"Mine"}`)
	})
})
