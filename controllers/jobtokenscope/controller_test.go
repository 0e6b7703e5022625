package jobtokenscope_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/jobtoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A job token scope", func() {
	It("becomes ready, and lets no other project in by default", func() {
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

	It("accepts a hundred entries", func() {
		s := forge.JobTokenScope("s").Of(website).Build()
		for id := range int64(100) {
			s.Spec.Allowlist = append(s.Spec.Allowlist, v1alpha1.AllowlistEntry{ProjectRef: byID(id + 1000)})
		}
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "allowlist[0] (with id 1000)")
		Expect(s.Status.Allowlist).To(HaveLen(100))
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
		Entry("to the project itself, which needs no entry", byName("website"), int64(8), "acme/website"),
		Entry("in another namespace by full path, and shows only that path", byPath("bolt/tool"), int64(0), "bolt/tool"),
		Entry("in another namespace by id, and shows only that id", byID(20), int64(20), ""),
	)

	It("shows the path and the id of a public project in another namespace", func() {
		f.Change(tool, func() { tool.Spec.Visibility = v1alpha1.VisibilityPublic })
		s := forge.JobTokenScope("s").Of(website).Allowing(byPath("Bolt/Tool"), byID(20)).Build()
		f.Create(s)
		f.ExpectReady(s)
		told := v1alpha1.ObservedAllowlistEntry{ID: 20, Path: "bolt/tool", Resolved: true}
		Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{told, told}))
		Expect(s.Status.AllowedProjects).To(Equal("bolt/tool, bolt/tool"))
	})

	It("allows no access if it does not resolve, is named, and does not affect the other entries", func() {
		s := forge.JobTokenScope("s").Of(website).Allowing(byName("tool"), byID(20), byPath("no/where"), byID(99)).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound,
			"these entries reference projects or groups that do not exist: allowlist[0] (tool), allowlist[2] (no/where), allowlist[3] (with id 99)")
		Expect(s.Status.Allowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{
			{}, {ID: 20, Resolved: true}, {Path: "no/where"}, {ID: 99},
		}))
		Expect(s.Status.AllowedProjects).To(Equal("id 20"))
	})

	It("resolves as soon as the project that it names appears, changes or is deleted", func() {
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

var _ = Describe("An entry for a group", func() {
	It("shows the group, follows its changes, and does not let in another group of its path", func() {
		f.Run()
		f.ExpectReady(acme, bolt)
		s := forge.JobTokenScope("s").Of(website).AllowingGroups(byName("acme"), byPath("bolt"), byPath("no/where")).Build()
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "groups that do not exist: groupAllowlist[2] (no/where)")
		Expect(s.Status.GroupAllowlist).To(Equal([]v1alpha1.ObservedAllowlistEntry{
			{ID: acme.RESTID(), Path: "acme", Resolved: true}, {ID: bolt.RESTID(), Path: "bolt", Resolved: true}, {Path: "no/where"},
		}))
		Expect(s.Status.AllowedProjects).To(Equal("acme/*, bolt/*"))
		Expect(s.Status.RecordedGroups).To(Equal([]v1alpha1.Reference{{Path: "bolt", UID: string(bolt.UID)}}))
		f.Change(s, func() { s.Spec.GroupAllowlist = s.Spec.GroupAllowlist[:2] })
		f.ExpectReady(s)

		f.Change(bolt, func() { bolt.Spec.Path = "nuts" })
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "do not exist: groupAllowlist[1] (bolt)")
		f.Create(forge.Group("bolt").In(f.NewNamespace()).Build())
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "now reference a different project or group, which they do not allow: groupAllowlist[1] (bolt)")
		f.ExpectRestartWritesNothing()
	})
})

var _ = Describe("An entry by path or id of a project in another namespace", func() {
	// replace replaces the admitted project with another project of the other namespace.
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

	It("does not let in a new project of that name until it is declared again or names its uid", func() {
		s := forge.JobTokenScope("s").Of(website).Allowing(byPath("bolt/tool"), byID(20), byName("website")).Build()
		f.Create(s)
		f.ExpectReady(s)
		Expect(s.Status.RecordedAllowlist).To(Equal([]v1alpha1.AllowlistEntry{
			{ProjectRef: v1alpha1.Reference{Path: "bolt/tool", UID: string(tool.UID)}}, {ProjectRef: v1alpha1.Reference{ID: 20, UID: string(tool.UID)}},
		}))
		was := s.Status.RecordedAllowlist

		again := replace()
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "these entries now reference a different project or group, which they do not allow",
			"allowlist[0] (bolt/tool), allowlist[1] (with id 20); to allow it, remove the entry and add it again, or set its uid as well")
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

	It("still refers to the first project after its own project was away", func() {
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

var _ = Describe("A job token scope:", func() {
	forge.DescribeTarget("a job token scope", forge.Projects, func() *forge.Forge { return f },
		func(name string, project, _ *v1alpha1.Reference) v1alpha1.Targeted {
			s := forge.JobTokenScope(name).Build()
			s.Spec.ProjectRef = *project
			return s
		})

	It("shows no allowlist while its project is not found", func() {
		s := forge.JobTokenScope("s").Of(tool).Allowing(byName("tool")).Build()
		s.Spec.ProjectRef = byName("website")
		f.Create(s)
		f.ExpectWaiting(s, v1alpha1.ReasonReferenceNotFound, "projectRef")
		Expect(s.Status.Allowlist).To(BeEmpty())
	})
})

var _ = Describe("A project with two job token scopes", func() {
	It("has the older one, and the younger one takes over when that is deleted", func() {
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

	It("is not affected by a scope in another namespace", func() {
		foreign := forge.JobTokenScope("s").Of(tool).Open().Build()
		foreign.Spec.ProjectRef = byPath("acme/website")
		own := forge.JobTokenScope("s").Of(website).Build()
		f.Create(foreign, own)
		f.ExpectWaiting(foreign, v1alpha1.ReasonReferenceNotFound)
		f.ExpectReady(own)
	})
})
