package project_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/repository"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A retained repository that two projects name", func() {
	It("gives its id to the project that adopts it, and not to a project that has no path for it", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		astray := forge.Project("astray").In(forge.Group("missing").In(namespace).Build()).Build()
		astray.Spec.AdoptRepository = "website"
		f.Create(astray)
		f.ExpectWaiting(astray, v1alpha1.ReasonReferenceNotFound, "groupRef", "missing")
		Expect(astray.Spec.ID).To(BeZero())

		web := forge.Project("web").In(acme).Build()
		web.Spec.AdoptRepository = "website"
		f.Create(web)
		expectAdopted(web, commit)
		Expect(web.Status.ID).To(Equal(r.Spec.Project.ID))

		f.Create(forge.Group("missing").In(namespace).Build())
		f.ExpectWaiting(astray, v1alpha1.ReasonReferenceNotFound, "adoptRepository", "website", "set another name, or None to start with a new repository")
		Expect(astray.Status.ID).To(BeZero())
		f.Change(astray, func() { astray.Spec.AdoptRepository = v1alpha1.AdoptNone })
		missing := forge.Group("missing").In(namespace).Build()
		f.Refresh(missing)
		f.ExpectReady(missing, astray)
		Expect(astray.Status.ID).NotTo(Or(BeZero(), Equal(web.Status.ID)))
	})

	It("goes with its id to one of two projects that are declared at once", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		f.Run()
		one, two := forge.Project("one").In(acme).Build(), forge.Project("two").In(acme).Build()
		one.Spec.AdoptRepository, two.Spec.AdoptRepository = "website", "website"
		f.Create(one, two)
		Eventually(func(g Gomega) {
			f.Refresh(one, two)
			adopter, other := one, two
			if two.Status.AdoptedRepository != "" {
				adopter, other = two, one
			}
			g.Expect(adopter.Status.AdoptedRepository).To(Equal(r.Name))
			g.Expect(adopter.Status.ID).To(Equal(r.Spec.Project.ID))
			g.Expect(other.Status.AdoptedRepository).To(BeEmpty())
			g.Expect(other.Status.ID).To(BeZero())
			g.Expect(meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ConditionReady)).To(PointTo(And(
				HaveField("Reason", v1alpha1.ReasonReferenceNotFound), HaveField("Message", ContainSubstring("None to start with a new repository")),
			)))
		}).WithPolling(polling).Should(Succeed())
	})
})

var _ = Describe("A project for which several deleted ones have left a repository", func() {
	// left returns a record of a deleted project in this namespace. There is no repository, because a choice does not need it.
	left := func(name, path string, id int64) *v1alpha1.RetainedRepository {
		GinkgoHelper()
		p := forge.Project(path).In(acme).Named(name).ID(id).Build()
		p.UID, p.Status.Storage = "left", "shard"
		p.Spec.ObjectFormat = v1alpha1.ObjectFormatSHA1
		r := repository.NewRetained(p, namespaceUID(), "acme/"+path, f.Clock.Now())
		f.Create(r)
		return r
	}

	// twice creates a project, deletes it, creates it again with a new repository, and deletes that.
	twice := func() (first, second *v1alpha1.RetainedRepository, commits [2]string) {
		GinkgoHelper()
		first, commits[0] = leave(forge.Project("website").In(acme).Build())
		again := forge.Project("website").In(acme).Adopting(v1alpha1.AdoptNone).Build()
		f.Create(again)
		f.ExpectReady(again)
		commits[1] = push(again, "main", "more")
		f.ExpectReady(again)
		drop(again)
		for _, r := range retained() {
			if r.Name != first.Name {
				second = &r
			}
		}
		Expect(second).NotTo(BeNil())
		return first, second, commits
	}

	It("must choose between repositories of the same name, the last one first, and gets the chosen one", func() {
		first, second, commits := twice()
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained, "several projects of this name",
			"set adoptRepository to "+second.Name+" or "+first.Name+" to adopt it", "None")
		Expect(web.Status.Storage).To(BeEmpty())
		Expect(web.Spec.ID).To(BeZero())
		f.Change(web, func() { web.Spec.AdoptRepository = "website" })
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained, "several projects named website", first.Name, second.Name)
		f.Change(web, func() { web.Spec.AdoptRepository = first.Name })
		Eventually(func() (int, error) {
			_, err := f.ReconcileOnce(web)
			for _, r := range retained() {
				_, _ = f.ReconcileOnce(&r)
			}
			return len(retained()), err
		}).WithPolling(polling).Should(Equal(1))
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commits[0]))
		Expect(web.Spec.ID).To(Equal(first.Spec.Project.ID))
		Expect(only().UID).To(Equal(second.UID))
		f.ExpectReady(second)
	})

	It("adopts the repository whose id it pins", func() {
		first, second, commits := twice()
		web := forge.Project("website").In(acme).ID(second.Spec.Project.ID).Build()
		f.Create(web)
		Eventually(func() ([]v1alpha1.RetainedRepository, error) {
			_, err := f.ReconcileOnce(web)
			for _, r := range retained() {
				_, _ = f.ReconcileOnce(&r)
			}
			return retained(), err
		}).WithPolling(polling).Should(ConsistOf(HaveField("UID", first.UID)))
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commits[1]))
		Expect(web.Spec.ID).To(Equal(second.Spec.Project.ID))
	})

	It("adopts the repository of its own name, even if another one had the same path before", func() {
		r, commit := leave(forge.Project("website").In(acme).Build())
		other := left("former", "website", 900)
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		Eventually(func() ([]v1alpha1.RetainedRepository, error) {
			_, err := f.ReconcileOnce(web)
			_, _ = f.ReconcileOnce(r)
			return retained(), err
		}).WithPolling(polling).Should(ConsistOf(HaveField("UID", other.UID)))
		f.ExpectReady(web)
		Expect(web.Status.HeadCommit).To(Equal(commit))
	})

	DescribeTable("is shown all candidates",
		func(project func() *v1alpha1.Project, says string, candidates ...[2]string) {
			var names []string
			for i, c := range candidates {
				names = append(names, left(c[0], c[1], int64(900+i)).Name)
			}
			p := project()
			f.Create(p)
			f.ExpectStalled(p, v1alpha1.ReasonRepositoryRetained, append(names, says, "None")...)
			Expect(retained()).To(HaveLen(len(candidates)))
		},
		Entry("by the same path, if none has the name", func() *v1alpha1.Project { return forge.Project("website").In(acme).Build() },
			"several deleted projects have left a repository under this full path", [2]string{"one", "website"}, [2]string{"two", "website"}),
		Entry("one by the name and one by the path", func() *v1alpha1.Project { return forge.Project("website").In(acme).Named("site").Build() },
			"its full path was acme/shop", [2]string{"site", "shop"}, [2]string{"other", "website"}),
	)

	It("is shown only some of many candidates", func() {
		for n := range 8 {
			left(fmt.Sprintf("former-%d", n), "website", int64(900+n))
		}
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained, "former-7", "former-3", "or one of 3 more", "None to start with a new repository")
	})

	It("gets the oldest candidate of the same id if it comes back first", func() {
		r, _ := leave(forge.Project("website").In(acme).Build())
		shop := forge.Project("shop").In(acme).ID(r.Spec.Project.ID).Build()
		f.Create(shop)
		f.ExpectReady(shop)
		commit := push(shop, "main")
		f.ExpectReady(shop)
		drop(shop)
		Expect(retained()).To(HaveLen(2))
		again := forge.Project("shop").In(acme).Build()
		f.Create(again)
		Eventually(func() ([]v1alpha1.RetainedRepository, error) {
			_, err := f.ReconcileOnce(again)
			for _, r := range retained() {
				_, _ = f.ReconcileOnce(&r)
			}
			return retained(), err
		}).WithPolling(polling).Should(ConsistOf(HaveField("UID", r.UID)))
		f.ExpectReady(again)
		Expect(again.Spec.ID).To(Equal(r.Spec.Project.ID))
		Expect(again.Status.HeadCommit).To(Equal(commit))
		web := forge.Project("website").In(acme).Build()
		f.Create(web)
		f.ExpectStalled(web, v1alpha1.ReasonRepositoryRetained, "its id was", r.Name, "None")
		Expect(only().UID).To(Equal(r.UID))
	})
})
