package tenancy_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("An editor of one namespace, with a JobTokenScope,", func() {
	It("gives no access to the project of others", func() {
		w := newWorld()
		var attempts []attempt
		for how, ref := range refs("website", "acme/website", w.website.Spec.ID) {
			s := forge.JobTokenScope("s").Of(w.mine).Open().Allowing(v1alpha1.Reference{Path: "bolt/app"}).Build()
			s.Spec.ProjectRef = ref
			attempts = append(attempts, attempt{"of it by " + how, s, v1alpha1.ReasonReferenceNotFound, "projectRef"})
		}
		w.try(attempts...)
		scope, err := w.Catalog.ProjectScope(GinkgoT().Context(), w.website)
		Expect(err).NotTo(HaveOccurred())
		got, err := jobtoken.NewScopes(w.Catalog).Decide(GinkgoT().Context(), w.mine, scope, jobtoken.Rights{User: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(jobtoken.Refused))
	})

	It("can let others into their own project, without any effect on the others and without learning anything of them", func() {
		w := newWorld()
		s := forge.JobTokenScope("s").Of(w.mine).
			Allowing(v1alpha1.Reference{Path: "acme/website"}, v1alpha1.Reference{ID: w.website.Spec.ID}).Build()
		w.declare(s)
		w.ExpectReady(s)
		Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{
			{Path: "acme/website", Resolved: true}, {ID: w.website.Spec.ID, Resolved: true},
		}))
		w.expectUntouched()
	})
})
