package jobtokenscope_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A job token scope", func() {
	It("becomes ready, and lets nobody else in unless something is said", func() {
		s := forge.JobTokenScope("s").Of(website).Build()
		f.Create(s)
		f.ExpectReady(s)
		Expect(s.Spec.InboundEnabled).To(HaveValue(BeTrue()))
		Expect(s.Spec.Restricted()).To(BeTrue())
		Expect(s.Status.TargetPath).To(Equal("acme/website"))
		Expect(s.Status.Allowlist).To(BeEmpty())
		f.Change(s, func() { *s.Spec.InboundEnabled = false })
		f.ExpectReady(s)
		Expect(s.Spec.Restricted()).To(BeFalse())
	})

	DescribeTable("is refused by the schema",
		func(change func(s *v1alpha1.JobTokenScope), words string) {
			s := forge.JobTokenScope("s").Of(website).Build()
			change(s)
			f.ExpectRefused(s, words)
		},
		Entry("without a project", func(s *v1alpha1.JobTokenScope) { s.Spec.ProjectRef.Name = "" }, "exactly one of the fields in [name path id]"),
		Entry("with an empty entry", func(s *v1alpha1.JobTokenScope) { s.Spec.Allowlist = []v1alpha1.AllowlistEntry{{}} }, "exactly one of the fields in [name path id]"),
		Entry("with an entry of two kinds", func(s *v1alpha1.JobTokenScope) {
			s.Spec.Allowlist = []v1alpha1.AllowlistEntry{{ProjectRef: v1alpha1.Reference{Path: "bolt/tool", ID: 20}}}
		}, "exactly one of the fields in [name path id]"),
		Entry("with more than a hundred entries", func(s *v1alpha1.JobTokenScope) {
			for id := range int64(101) {
				s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: byID(id + 1)})
			}
		}, "spec.allowlist"),
	)

	It("takes a hundred entries, and stays that of its project", func() {
		s := forge.JobTokenScope("s").Of(website).Build()
		for id := range int64(100) {
			s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: byID(id + 1000)})
		}
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "allowlist[0] (with id 1000)")
		Expect(s.Status.Allowlist).To(HaveLen(100))
		f.ExpectChangeRefused(s, func() { s.Spec.ProjectRef = byPath("acme/website") }, "projectRef cannot change")
	})
})

var _ = Describe("An entry of a job token scope", func() {
	DescribeTable("resolves",
		func(ref v1alpha1.Reference, id int64, path string) {
			sibling := forge.Project("sibling").In(acme).ID(9).Build()
			f.Create(sibling)
			s := forge.JobTokenScope("s").Of(website).Allowing(ref).Build()
			f.Create(s)
			f.ExpectReady(s)
			Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{{ID: id, Path: path, Resolved: true}}))
		},
		Entry("by name", byName("sibling"), int64(9), "acme/sibling"),
		Entry("by full path", byPath("Acme/Sibling"), int64(9), "acme/sibling"),
		Entry("by id", byID(9), int64(9), "acme/sibling"),
		Entry("to the project itself, which needs none", byName("website"), int64(8), "acme/website"),
		Entry("in another namespace by full path, of which nothing more is told", byPath("bolt/tool"), int64(0), "bolt/tool"),
		Entry("in another namespace by id, of which nothing more is told", byID(20), int64(20), ""),
	)

	It("tells the path and the id of a project in another namespace that is public", func() {
		f.Change(tool, func() { tool.Spec.Visibility = v1alpha1.VisibilityPublic })
		s := forge.JobTokenScope("s").Of(website).Allowing(byPath("Bolt/Tool"), byID(20)).Build()
		f.Create(s)
		f.ExpectReady(s)
		told := v1alpha1.ObservedAllowlistEntry{ID: 20, Path: "bolt/tool", Resolved: true}
		Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{told, told}))
	})

	It("that leads nowhere lets nobody in, is named, and takes nothing from the others", func() {
		s := forge.JobTokenScope("s").Of(website).Allowing(byName("tool"), byID(20), byPath("no/where"), byID(99)).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound,
			"these entries reference projects that do not exist: allowlist[0] (tool), allowlist[2] (no/where), allowlist[3] (with id 99)")
		Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{
			{}, {ID: 20, Resolved: true}, {Path: "no/where"}, {ID: 99},
		}))
	})

	It("resolves as soon as what it names appears, changes and goes", func() {
		f.NewStorage("default")
		f.Run()
		s := forge.JobTokenScope("s").Of(website).Allowing(byName("later"), byPath("bolt/new"), byID(30)).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "allowlist[0] (later), allowlist[1] (bolt/new), allowlist[2] (with id 30)")
		later := forge.Project("later").In(acme).Build()
		f.Create(later)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "do not exist: allowlist[1] (bolt/new), allowlist[2] (with id 30)")
		thirty := forge.Project("thirty").In(bolt).ID(30).Build()
		f.Create(thirty)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "do not exist: allowlist[1] (bolt/new)")
		f.Change(tool, func() { tool.Spec.Path = "new" })
		f.ExpectReady(s)
		f.Eventually(s).Should(HaveField("Status.Allowlist", ConsistOf(
			And(HaveField("Path", "acme/later"), HaveField("ID", BeNumerically(">", 0))), HaveField("Path", "bolt/new"), HaveField("ID", BeEquivalentTo(30)))))
		f.ExpectRestartWritesNothing()

		f.Change(tool, func() { tool.Spec.Visibility = v1alpha1.VisibilityPublic })
		f.Eventually(s).Should(HaveField("Status.Allowlist", ContainElement(v1alpha1.ObservedAllowlistEntry{ID: 20, Path: "bolt/new", Resolved: true})))
		f.Change(bolt, func() { bolt.Spec.Visibility = v1alpha1.VisibilityPrivate })
		f.Eventually(s).Should(HaveField("Status.Allowlist", ContainElement(v1alpha1.ObservedAllowlistEntry{Path: "bolt/new", Resolved: true})))
		f.Change(bolt, func() { bolt.Spec.Path = "nuts" })
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "do not exist: allowlist[1] (bolt/new)")
		f.Delete(thirty)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "do not exist: allowlist[1] (bolt/new), allowlist[2] (with id 30)")
		f.Change(s, func() { s.Spec.Allowlist = s.Spec.Allowlist[:1] })
		f.ExpectReady(s)
	})
})

var _ = Describe("An entry by path or id of a project in another namespace", func() {
	// replace replaces the admitted project with another one of the other namespace.
	replace := func() *v1alpha1.Project {
		GinkgoHelper()
		id := tool.Spec.ID
		f.Delete(tool)
		_, err := f.ReconcileOnce(tool)
		Expect(err).NotTo(HaveOccurred())
		f.ExpectGone(tool)
		again := forge.Project("tool").In(bolt).ID(id).Build()
		again.Spec.AdoptRepository = v1alpha1.AdoptNone
		f.Create(again)
		return again
	}

	It("does not let in another one that is made anew, until it is declared anew or names its uid", func() {
		s := forge.JobTokenScope("s").Of(website).Allowing(byPath("bolt/tool"), byID(20), byName("website")).Build()
		f.Create(s)
		f.ExpectReady(s)
		Expect(s.Status.RecordedAllowlist).To(Equal([]v1alpha1.AllowlistEntry{
			{ProjectRef: v1alpha1.Reference{Path: "bolt/tool", UID: string(tool.UID)}}, {ProjectRef: v1alpha1.Reference{ID: 20, UID: string(tool.UID)}},
		}))
		was := s.Status.RecordedAllowlist

		again := replace()
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "these entries now reference a different project, which they do not allow",
			"allowlist[0] (bolt/tool), allowlist[1] (with id 20); to allow that project, remove the entry and add it again, or set its uid as well")
		Expect(s.Status.RecordedAllowlist).To(Equal(was))
		Expect(s.Status.Allowlist[0].Resolved).To(BeFalse())
		Expect(jobtoken.Allows(GinkgoT().Context(), f.Catalog, s, again)).To(BeFalse())

		f.Change(s, func() { s.Spec.Allowlist[0].ProjectRef.UID = string(again.UID) })
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "which they do not allow: allowlist[1] (with id 20);")
		Expect(jobtoken.Allows(GinkgoT().Context(), f.Catalog, s, again)).To(BeTrue())
		entries := s.Spec.Allowlist
		f.Change(s, func() { s.Spec.Allowlist = nil })
		f.ExpectReady(s)
		Expect(s.Status.RecordedAllowlist).To(BeEmpty())
		entries[0].ProjectRef.UID = ""
		f.Change(s, func() { s.Spec.Allowlist = entries })
		f.ExpectReady(s)
		Expect(jobtoken.Allows(GinkgoT().Context(), f.Catalog, s, again)).To(BeTrue())
	})

	It("is still the first one's when its own project was away", func() {
		s := forge.JobTokenScope("s").Of(website).Allowing(byPath("bolt/tool")).Build()
		f.Create(s)
		f.ExpectReady(s)
		f.Change(website, func() { website.Spec.GroupRef = byName("nowhere") })
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "projectRef")
		again := replace()
		f.Change(website, func() { website.Spec.GroupRef = byName(acme.Name) })
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "allowlist[0] (bolt/tool)")
		Expect(jobtoken.Allows(GinkgoT().Context(), f.Catalog, s, again)).To(BeFalse())
	})
})

var _ = Describe("The project of a job token scope", func() {
	DescribeTable("is found",
		func(ref v1alpha1.Reference) {
			s := forge.JobTokenScope("s").Of(website).Build()
			s.Spec.ProjectRef = ref
			f.Create(s)
			f.ExpectReady(s)
			Expect(s.OwnerReferences).To(ConsistOf(HaveField("UID", website.UID)))
		},
		Entry("by name", byName("website")), Entry("by full path", byPath("ACME/website")), Entry("by id", byID(8)),
	)

	DescribeTable("is not found in another namespace",
		func(ref v1alpha1.Reference) {
			s := forge.JobTokenScope("s").Of(tool).Allowing(byName("tool")).Build()
			s.Spec.ProjectRef = ref
			f.Create(s)
			f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "projectRef")
			Expect(s.OwnerReferences).To(BeEmpty())
			Expect(s.Status.TargetPath).To(BeEmpty())
			Expect(s.Status.Allowlist).To(BeEmpty())
		},
		Entry("by name", byName("website")), Entry("by full path", byPath("acme/website")), Entry("by id", byID(8)),
	)

	It("may appear later, move and lose its place", func() {
		f.Run()
		later := forge.Project("later").In(acme).Build()
		s := forge.JobTokenScope("s").Of(later).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "projectRef: project later: not found")
		f.Create(later)
		f.ExpectReady(s)
		f.Change(acme, func() { acme.Spec.Path = "example" })
		f.Eventually(s).Should(HaveField("Status.TargetPath", "example/later"))
		f.Delete(acme)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "projectRef", "acme")
		Expect(s.Status.TargetPath).To(BeEmpty())
	})

	It("takes the scope with it, and so does the namespace", func() {
		f.NewStorage("default")
		f.Run()
		other := forge.Project("other").In(acme).Build()
		s, ofOther := forge.JobTokenScope("s").Of(website).Build(), forge.JobTokenScope("o").Of(other).Build()
		f.Create(s, other, ofOther)
		f.ExpectReady(website, other, s, ofOther)
		f.Delete(website)
		f.ExpectGone(website, s)
		f.ExpectReady(ofOther)
		f.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: acme.Namespace}})
		f.ExpectGone(ofOther, other)
	})
})

var _ = Describe("A project with two job token scopes", func() {
	It("has the older one, and the younger one takes over when that goes", func() {
		f.Run()
		one, two := forge.JobTokenScope("one").Of(website).Build(), forge.JobTokenScope("two").Of(website).Open().Build()
		two.Spec.ProjectRef = byID(8)
		older, younger := forge.CreateInTurn(f, one, two)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "the job token scope of acme/website", "held by JobTokenScope "+older.Name)
		f.ExpectRestartWritesNothing()
		f.Delete(older)
		f.ExpectReady(younger)
	})

	It("in another namespace is not held up by one that is none of its own", func() {
		foreign := forge.JobTokenScope("s").Of(tool).Open().Build()
		foreign.Spec.ProjectRef = byPath("acme/website")
		own := forge.JobTokenScope("s").Of(website).Build()
		f.Create(foreign, own)
		f.ExpectWaiting(foreign, v1alpha1.ReasonReferenceNotFound)
		f.ExpectReady(own)
	})
})
