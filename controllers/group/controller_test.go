package group_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/claim"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A group", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return forge.Group(name).In(namespace).Build()
	})

	It("becomes ready at the root, private and open only to its own namespace", func() {
		acme := forge.Group("Acme").In(namespace).Build()
		f.Create(acme)
		f.ExpectReady(acme)
		Expect(acme.Status.FullPath).To(Equal("Acme"))
		Expect(acme.Spec).To(Equal(v1alpha1.GroupSpec{ID: 1, Path: "Acme", Visibility: v1alpha1.VisibilityPrivate}))
	})

	It("shows the visibility that is in force, at every level", func() {
		f.Run()
		acme := forge.Group("acme").In(namespace).Visibility(v1alpha1.VisibilityPrivate).Build()
		web := forge.Group("web").In(namespace).Visibility(v1alpha1.VisibilityPublic).Build()
		api := forge.Group("api").In(namespace).Visibility(v1alpha1.VisibilityInternal).Build()
		web.Spec.ParentRef, api.Spec.ParentRef = &v1alpha1.Reference{Name: "acme"}, &v1alpha1.Reference{Name: "web"}
		f.Create(acme, web, api)
		expect := func(of map[*v1alpha1.Group]v1alpha1.Visibility) {
			GinkgoHelper()
			for g, v := range of {
				f.Eventually(g).Should(HaveField("Status.Visibility", v))
			}
		}
		expect(map[*v1alpha1.Group]v1alpha1.Visibility{acme: v1alpha1.VisibilityPrivate, web: v1alpha1.VisibilityPrivate, api: v1alpha1.VisibilityPrivate})
		f.Change(acme, func() { acme.Spec.Visibility = v1alpha1.VisibilityPublic })
		expect(map[*v1alpha1.Group]v1alpha1.Visibility{acme: v1alpha1.VisibilityPublic, web: v1alpha1.VisibilityPublic, api: v1alpha1.VisibilityInternal})
		f.ExpectRestartWritesNothing()
		f.Change(api, func() { api.Spec.ParentRef = &v1alpha1.Reference{Name: "nowhere"} })
		expect(map[*v1alpha1.Group]v1alpha1.Visibility{api: ""})
	})

	DescribeTable("finds its parent",
		func(parentRef func(*v1alpha1.Group) *v1alpha1.Reference) {
			acme := forge.Group("acme").In(namespace).Build()
			f.Create(acme)
			f.ExpectReady(acme)
			web := forge.Group("web").In(namespace).Build()
			web.Spec.ParentRef = parentRef(acme)
			f.Create(web)
			f.ExpectReady(web)
			Expect(web.Status.FullPath).To(Equal("acme/web"))
		},
		Entry("by name", func(g *v1alpha1.Group) *v1alpha1.Reference { return &v1alpha1.Reference{Name: g.Name} }),
		Entry("by full path", func(*v1alpha1.Group) *v1alpha1.Reference { return &v1alpha1.Reference{Path: "acme"} }),
		Entry("by full path in other letters", func(*v1alpha1.Group) *v1alpha1.Reference { return &v1alpha1.Reference{Path: "ACME"} }),
		Entry("by id", func(g *v1alpha1.Group) *v1alpha1.Reference { return &v1alpha1.Reference{ID: g.Spec.ID} }),
	)

	DescribeTable("waits for a parent that does not exist",
		func(ref v1alpha1.Reference, shown string) {
			web := forge.Group("web").In(namespace).Build()
			web.Spec.ParentRef = &ref
			f.Create(web)
			f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "parentRef: group "+shown+": not found")
			Expect(web.Status.FullPath).To(BeEmpty())
		},
		Entry("by name", v1alpha1.Reference{Name: "acme"}, "acme"),
		Entry("by full path", v1alpha1.Reference{Path: "acme/sub"}, "acme/sub"),
		Entry("by id", v1alpha1.Reference{ID: 99}, "with id 99"),
	)

	It("has its own path as a path segment only: a project cannot contain groups", func() {
		acme := forge.Group("acme").In(namespace).Build()
		web := forge.Project("web").In(acme).Build()
		below := forge.Group("below").In(namespace).BelowPath("acme/web").Build()
		f.Create(acme, web, below)
		f.ExpectReady(acme)
		f.ExpectWaiting(below, v1alpha1.ReasonReferenceNotFound, "acme/web")
	})

	It("cannot be its own ancestor", func() {
		self := forge.Group("self").In(namespace).Build()
		self.Spec.ParentRef = &v1alpha1.Reference{Name: "self"}
		a, b := forge.Group("a").In(namespace).Build(), forge.Group("b").In(namespace).Build()
		f.Create(self, a)
		f.ExpectStalled(self, v1alpha1.ReasonReferenceCycle)
		b.Spec.ParentRef = &v1alpha1.Reference{Name: "a"}
		f.Create(b)
		f.ExpectReady(a, b)
		f.Change(a, func() { a.Spec.ParentRef = &v1alpha1.Reference{Name: "b"} })
		f.ExpectStalled(a, v1alpha1.ReasonReferenceCycle, "parentRef", "change the parentRef of one of these groups")
		f.ExpectStalled(b, v1alpha1.ReasonReferenceCycle, "parentRef", "change the parentRef of one of these groups")
		Expect(b.Status.FullPath).To(BeEmpty())
		f.ExpectRestartWritesNothing()
	})

	It("can be at most twenty levels deep", func() {
		above := forge.Group("level-1").In(namespace).Build()
		f.Create(above)
		for i := 2; i <= 20; i++ {
			next := forge.Group(fmt.Sprintf("level-%d", i)).Below(above).Build()
			f.Create(next)
			above = next
		}
		f.ExpectReady(above)
		Expect(strings.Count(above.Status.FullPath, "/")).To(Equal(19))
		tooDeep := forge.Group("level-21").Below(above).Build()
		f.Create(tooDeep)
		f.ExpectStalled(tooDeep, v1alpha1.ReasonReferenceCycle, "20 levels")
	})

	It("follows its parent when that is renamed or moved, or when a cycle is broken", func() {
		f.Run()
		acme := forge.Group("acme").In(namespace).Build()
		byName := forge.Group("web").Below(acme).Build()
		byPath := forge.Group("ops").In(namespace).BelowPath("acme").Build()
		deep := forge.Group("deep").Below(byName).Build()
		deepByPath := forge.Group("lost").In(namespace).BelowPath("acme/web").Build()
		f.Create(deepByPath, deep, byPath, byName, acme)
		f.ExpectReady(acme, byName, byPath, deep, deepByPath)
		Expect(deep.Status.FullPath).To(Equal("acme/web/deep"))
		f.ExpectRestartWritesNothing()

		By("renaming the root")
		f.Change(acme, func() { acme.Spec.Path = "example" })
		f.Eventually(deep).Should(HaveField("Status.FullPath", "example/web/deep"))
		f.ExpectWaiting(byPath, v1alpha1.ReasonReferenceNotFound, "group acme: not found")
		f.ExpectWaiting(deepByPath, v1alpha1.ReasonReferenceNotFound, "group acme/web: not found")

		By("changing a reference by path")
		f.Change(byPath, func() { byPath.Spec.ParentRef.Path = "example" })
		f.ExpectReady(byPath)
		Expect(byPath.Status.FullPath).To(Equal("example/ops"))

		By("moving a group with everything below it")
		f.Change(byName, func() { byName.Spec.ParentRef.Name = byPath.Name })
		f.Eventually(deep).Should(HaveField("Status.FullPath", "example/ops/web/deep"))

		By("closing a cycle, and breaking it")
		f.Change(byPath, func() { byPath.Spec.ParentRef = &v1alpha1.Reference{Name: deep.Name} })
		f.ExpectStalled(deep, v1alpha1.ReasonReferenceCycle)
		f.ExpectStalled(byPath, v1alpha1.ReasonReferenceCycle)
		f.Change(byPath, func() { byPath.Spec.ParentRef = nil })
		f.ExpectReady(byPath, byName, deep)
		Expect(deep.Status.FullPath).To(Equal("ops/web/deep"))
		f.ExpectRestartWritesNothing()
	})

	It("waits while its parent is gone, and recovers with it", func() {
		f.Run()
		acme := forge.Group("acme").In(namespace).Build()
		web := forge.Group("web").Below(acme).Build()
		deep := forge.Group("deep").In(namespace).BelowPath("acme/web").Build()
		f.Create(deep)
		f.ExpectWaiting(deep, v1alpha1.ReasonReferenceNotFound, "acme/web")
		f.Create(acme, web)
		f.ExpectReady(acme, web, deep)
		f.Delete(acme)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound, "acme")
		f.ExpectWaiting(deep, v1alpha1.ReasonReferenceNotFound, "acme/web")
		Expect(deep.Status.FullPath).To(BeEmpty())
		f.Create(forge.Group("acme").In(namespace).Build())
		f.ExpectReady(web, deep)
	})

	It("is deleted together with its namespace", func() {
		f.Run()
		acme := forge.Group("acme").In(namespace).Build()
		web := forge.Group("web").Below(acme).Build()
		f.Create(acme, web)
		f.ExpectReady(acme, web)
		f.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		f.ExpectGone(acme, web)
	})
})

var _ = Describe("The full path of a group", func() {
	It("belongs to the oldest claim, across namespaces and regardless of case", func() {
		a, b := forge.Group("acme").In(namespace).Build(), forge.Group("ACME").In(f.NewNamespace()).Build()
		f.Create(a, b)
		older, younger := forge.ByAge(a, b)
		f.ExpectReady(older)
		f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "full path ", "held by Group "+older.Namespace+"/acme")
		Expect(younger.Status.FullPath).To(BeEmpty())

		below := forge.Group("web").Below(younger).Build()
		f.Create(below)
		f.ExpectWaiting(below, v1alpha1.ReasonReferenceNotReady, "a parent group")
	})

	DescribeTable("passes on",
		func(release func(older *v1alpha1.Group)) {
			f.Run()
			a, b := forge.Group("acme").In(namespace).Build(), forge.Group("acme").In(f.NewNamespace()).Build()
			older, younger := forge.CreateInTurn(f, a, b)
			below := forge.Group("web").Below(younger).Build()
			f.Create(below)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, older.Namespace)
			f.ExpectWaiting(below, v1alpha1.ReasonReferenceNotReady)
			release(older)
			f.ExpectReady(younger, below)
			Expect(below.Status.FullPath).To(Equal("acme/web"))
		},
		Entry("when the holder is deleted", func(older *v1alpha1.Group) { f.Delete(older) }),
		Entry("when the holder is renamed", func(older *v1alpha1.Group) {
			f.Change(older, func() { older.Spec.Path = "example" })
		}),
		Entry("when the holder moves below another group", func(older *v1alpha1.Group) {
			top := forge.Group("top").In(older.Namespace).Build()
			f.Create(top)
			f.Change(older, func() { older.Spec.ParentRef = &v1alpha1.Reference{Name: "top"} })
		}),
	)

	It("is shared with projects, and passes between groups and projects", func() {
		f.NewStorage("default")
		f.Run()
		acme := forge.Group("acme").In(namespace).Build()
		group := forge.Group("web").Below(acme).Named("web-group").Build()
		project := forge.Project("Web").In(acme).Named("web-project").Build()
		f.Create(acme, group, project)
		f.ExpectReady(acme)
		if claim.Older(group, project) {
			f.ExpectReady(group)
			f.ExpectStalled(project, v1alpha1.ReasonAlreadyExists, "Group web-group")
			f.Delete(group)
			f.ExpectReady(project)
		} else {
			f.ExpectReady(project)
			f.ExpectStalled(group, v1alpha1.ReasonAlreadyExists, "Project web-project")
			f.Delete(project)
			f.ExpectReady(group)
		}
	})

	It("can exist at the root and below another group at the same time", func() {
		acme, web := forge.Group("acme").In(namespace).Build(), forge.Group("web").In(namespace).Build()
		below := forge.Group("web").Below(acme).Named("web-of-acme").Build()
		f.Create(acme, web, below)
		f.ExpectReady(acme, web, below)
	})
})

var _ = Describe("A group whose parent is in another namespace", func() {
	var other string
	var acme, web *v1alpha1.Group
	BeforeEach(func() {
		other = f.NewNamespace("tier=trusted")
		acme = forge.Group("acme").In(namespace).Visibility(v1alpha1.VisibilityPublic).Build()
		web = forge.Group("web").In(other).BelowPath("acme").Build()
	})

	It("is not admitted by default, nor by Same", func() {
		f.Create(acme, web)
		f.ExpectReady(acme)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed, "parentRef", "allowedNamespaces")
		f.Change(acme, func() { acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSame} })
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed)
	})

	DescribeTable("does not learn whether the parent exists unless everybody can see it",
		func(v v1alpha1.Visibility) {
			running := f.Run()
			acme.Spec.Visibility = v
			f.Create(acme, web)
			f.ExpectReady(acme)
			f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound,
				"parentRef: group acme: not found, or it does not allow groups of this namespace in its allowedNamespaces")
			hidden := web.Status.Conditions

			f.Delete(acme)
			running.ExpectIdle()
			f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound)
			Expect(web.Status.Conditions).To(Equal(hidden))
		},
		Entry("private", v1alpha1.VisibilityPrivate),
		Entry("internal", v1alpha1.VisibilityInternal),
	)

	It("learns that a parent does not admit it once everybody can see the parent", func() {
		f.Run()
		acme.Spec.Visibility = v1alpha1.VisibilityPrivate
		f.Create(acme, web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound)
		f.Change(acme, func() { acme.Spec.Visibility = v1alpha1.VisibilityPublic })
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed)
		f.Change(acme, func() { acme.Spec.Visibility = v1alpha1.VisibilityPrivate })
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound)
	})

	It("is admitted by All, whether its reference uses the path or the id", func() {
		acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		f.Create(acme, web)
		f.ExpectReady(acme, web)
		byID := forge.Group("by-id").In(other).BelowID(acme.Spec.ID).Build()
		f.Create(byID)
		f.ExpectReady(byID)
		Expect(byID.Status.FullPath).To(Equal("acme/by-id"))
	})

	It("is not found by name", func() {
		acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
		web.Spec.ParentRef = &v1alpha1.Reference{Name: "acme"}
		f.Create(acme, web)
		f.ExpectReady(acme)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotFound)
	})

	It("is admitted by a selector as long as the labels of its namespace match", func() {
		f.Run()
		acme = forge.Group("acme").In(namespace).Visibility(v1alpha1.VisibilityPublic).AdmittingLabelled("tier", "trusted").Build()
		elsewhere := forge.Group("elsewhere").In(f.NewNamespace("tier=unknown")).BelowPath("acme").Build()
		below := forge.Group("below").Below(web).Build()
		f.Create(acme, web, elsewhere, below)
		f.ExpectReady(acme, web, below)
		f.ExpectWaiting(elsewhere, v1alpha1.ReasonReferenceNotAllowed)

		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}
		f.Change(ns, func() { delete(ns.Labels, "tier") })
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed)
		f.ExpectWaiting(below, v1alpha1.ReasonReferenceNotAllowed)
		f.Change(ns, func() { ns.Labels["tier"] = "trusted" })
		f.ExpectReady(web, below)
	})

	It("follows changes of what its parent admits", func() {
		f.Run()
		f.Create(acme, web)
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed)
		f.Change(acme, func() { acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll} })
		f.ExpectReady(web)
		f.Change(acme, func() { acme.Spec.AllowedNamespaces = nil })
		f.ExpectWaiting(web, v1alpha1.ReasonReferenceNotAllowed)
		Expect(web.Status.FullPath).To(BeEmpty())
	})

	It("claims no path before it is admitted", func() {
		f.Create(web)
		own := forge.Group("web").Below(acme).Build()
		f.Create(acme, own)
		f.ExpectReady(acme, own)
		Expect(own.Status.FullPath).To(Equal("acme/web"))
	})
})

var _ = Describe("A root group in an installation with rules for root groups", func() {
	var open string
	BeforeEach(func() {
		open = f.NewNamespace()
		f = forge.New(cluster, forge.Options{RootGroups: []catalog.RootGroupRule{
			{Namespace: open, Path: "*"}, {Namespace: namespace, Path: "team-*"},
		}})
	})

	It("is ready if a rule allows it", func() {
		anything, own := forge.Group("anything").In(open).Build(), forge.Group("team-blue").In(namespace).Build()
		f.Create(anything, own)
		f.ExpectReady(anything, own)
	})

	It("is stalled if no rule allows it, claims nothing, and has nothing below it", func() {
		squatter := forge.Group("acme").In(namespace).Build()
		below := forge.Group("web").Below(squatter).Build()
		f.Create(squatter, below)
		f.ExpectStalled(squatter, v1alpha1.ReasonNamespaceNotAllowed)
		f.ExpectStalled(below, v1alpha1.ReasonNamespaceNotAllowed)
		acme := forge.Group("acme").In(open).Build()
		f.Create(acme)
		f.ExpectReady(acme)
	})

	It("does not prevent others from creating groups below an allowed one", func() {
		acme := forge.Group("acme").In(open).Admitting(v1alpha1.NamespacesFromAll).Build()
		web := forge.Group("web").In(namespace).BelowPath("acme").Build()
		f.Create(acme, web)
		f.ExpectReady(acme, web)
	})
})

// admitting returns a change after which a group admits namespaces that have a label.
func admitting(label string) func(*v1alpha1.GroupSpec) {
	return func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesFromSelector, Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{label: "c"}},
		}
	}
}

var _ = DescribeTable("A group is refused by the API server",
	func(change func(*v1alpha1.GroupSpec), words ...string) {
		acme := forge.Group("acme").In(namespace).Build()
		change(&acme.Spec)
		f.ExpectRefused(acme, words...)
	},
	Entry("without a path", func(s *v1alpha1.GroupSpec) { s.Path = "" }, "spec.path"),
	Entry("with a path that is too long", func(s *v1alpha1.GroupSpec) { s.Path = strings.Repeat("a", 256) }, "spec.path"),
	Entry("with a slash in the path", func(s *v1alpha1.GroupSpec) { s.Path = "a/b" }, "spec.path"),
	Entry("with a path of two dots", func(s *v1alpha1.GroupSpec) { s.Path = ".." }, "spec.path"),
	Entry("with a leading dash", func(s *v1alpha1.GroupSpec) { s.Path = "-acme" }, "spec.path"),
	Entry("with a trailing newline", func(s *v1alpha1.GroupSpec) { s.Path = "acme\n" }, "spec.path"),
	Entry("with a NUL in the path", func(s *v1alpha1.GroupSpec) { s.Path = "ac\x00me" }, "spec.path"),
	Entry("with a path in .git", func(s *v1alpha1.GroupSpec) { s.Path = "acme.git" }, "must not end in .git or .atom"),
	Entry("with a path in .atom", func(s *v1alpha1.GroupSpec) { s.Path = "acme.atom" }, "must not end in .git or .atom"),
	Entry("with a name that is too long", func(s *v1alpha1.GroupSpec) { s.Name = strings.Repeat("a", 256) }, "spec.name"),
	Entry("with a description that is too long", func(s *v1alpha1.GroupSpec) { s.Description = strings.Repeat("a", 501) }, "spec.description"),
	Entry("with an unknown visibility", func(s *v1alpha1.GroupSpec) { s.Visibility = "Secret" }, "spec.visibility"),
	Entry("with an empty parentRef", func(s *v1alpha1.GroupSpec) { s.ParentRef = &v1alpha1.Reference{} }, "exactly one of the fields in [name path id]"),
	Entry("with a parentRef by name and path", func(s *v1alpha1.GroupSpec) {
		s.ParentRef = &v1alpha1.Reference{Name: "a", Path: "a"}
	}, "exactly one of the fields in [name path id]"),
	Entry("with a parentRef by path and id", func(s *v1alpha1.GroupSpec) {
		s.ParentRef = &v1alpha1.Reference{Path: "a", ID: 1}
	}, "exactly one of the fields in [name path id]"),
	Entry("with a negative id in parentRef", func(s *v1alpha1.GroupSpec) { s.ParentRef = &v1alpha1.Reference{ID: -1} }, "spec.parentRef.id"),
	Entry("with an unknown allowedNamespaces", func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: "Friends"}
	}, "spec.allowedNamespaces.from"),
	Entry("with Selector but without a selector", func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSelector}
	}, "selector goes with from: Selector"),
	Entry("with a selector but without Selector", func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesFromAll, Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "b"}},
		}
	}, "selector goes with from: Selector"),
	Entry("with a label that no namespace can have", admitting("a b"), "a label must be a name"),
	Entry("with a label whose name is too long", admitting(strings.Repeat("a", 64)), "a label must be a name"),
	Entry("with a label whose prefix begins with a hyphen", admitting("-example.com/team"), "a label must be a name"),
	Entry("with a label whose prefix has an empty part", admitting("example..com/team"), "a label must be a name"),
	Entry("with a value that no label can have", func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesFromSelector, Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{"a": "team-*"}},
		}
	}, "the value of a label must consist of"),
	Entry("with an empty selector", func(s *v1alpha1.GroupSpec) {
		s.AllowedNamespaces = &v1alpha1.AllowedNamespaces{
			From: v1alpha1.NamespacesFromSelector, Selector: &v1alpha1.NamespaceSelector{MatchLabels: map[string]v1alpha1.LabelValue{}},
		}
	}, "matchLabels"),
)
