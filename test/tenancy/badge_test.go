package tenancy_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/badge"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An editor of one namespace, with a Badge,", func() {
	It("shows nothing on the projects of others, and learns nothing of them", func() {
		w := newWorld()
		theirs := forge.Badge("theirs").Of(w.website).Build()
		w.Create(theirs)
		w.ExpectReady(theirs)
		w.youngerFromHere()
		w.before = w.snapshot()
		attempts := []attempt{{"the same id", forge.Badge("b").Of(w.mine).ID(theirs.Spec.ID).Build(), v1alpha1.ReasonAlreadyExists, "id "}}
		aim := func(what, field string, project, group *v1alpha1.Reference) {
			b := forge.Badge("b").Link("https://a/%{project_path}%{project_id}%{commit_sha}%{group_name}").Build()
			b.Spec.ProjectRef, b.Spec.GroupRef = project, group
			attempts = append(attempts, attempt{what, b, v1alpha1.ReasonReferenceNotFound, field})
		}
		for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
			aim("of the project by "+how, "projectRef", &ref, nil)
		}
		for how, ref := range refs("acme", "acme", w.acme.Spec.ID) {
			aim("of the group by "+how, "groupRef", nil, &ref)
		}
		w.try(attempts...)
		for _, a := range attempts[1:] {
			Expect(a.object.(*v1alpha1.Badge).Status.RenderedLinkURL).To(BeEmpty(), a.what)
		}
		scope, err := w.Catalog.ProjectScope(GinkgoT().Context(), w.website)
		Expect(err).NotTo(HaveOccurred())
		shown, err := badge.All(GinkgoT().Context(), w.Catalog, scope)
		Expect(err).NotTo(HaveOccurred())
		Expect(shown).To(ConsistOf(HaveField("Name", "theirs")))
	})
})
