package protectedbranch_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A protected branch", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified { return forge.ProtectedBranch(name).Of(website).Build() })

	It("becomes ready, for maintainers", func() {
		b := forge.ProtectedBranch("release/*").Of(website).Build()
		f.Create(b)
		f.ExpectReady(b)
		for _, levels := range [][]v1alpha1.ResolvedAccessLevel{b.Status.Push, b.Status.Merge, b.Status.Unprotect} {
			Expect(shown(levels)).To(Equal([]v1alpha1.ResolvedAccessLevel{maintainers}))
		}
		Expect(b.Status.TargetPath).To(Equal("acme/website"))
		Expect(b.Spec.AllowForcePush).To(BeFalse())
		Expect(b.Status.MatchedBranchCount).To(BeZero())
	})

	It("shows its access levels in the words of the REST API", func() {
		ada := forge.User("ada").ID(5).Build()
		ada.Spec.Name = "Ada L."
		bob := forge.User("bob").ID(6).Build()
		ops := forge.Group("ops").In(namespace).ID(7).Build()
		key := forge.DeployKey("CI").Of(website).ID(8).Build()
		f.Create(ada, bob, ops, key)
		b := forge.ProtectedBranch("main").Of(website).
			Push(forge.Role(v1alpha1.AccessMaintainer), forge.Level(ada), forge.Level(ops), forge.Level(key)).
			Merge(forge.Role(v1alpha1.AccessDeveloper), forge.Level(bob)).
			Unprotect(forge.Role(v1alpha1.AccessAdmin)).Build()
		f.Create(b)
		f.ExpectReady(b)
		Expect(shown(b.Status.Push)).To(Equal([]v1alpha1.ResolvedAccessLevel{
			{Role: v1alpha1.AccessMaintainer, Description: "Maintainers"}, {UserID: 5, Description: "Ada L."},
			{GroupID: 7, Description: "ops"}, {DeployKeyID: 8, Description: "CI"},
		}))
		Expect(b.Status.PushDescription).To(Equal("Maintainers, Ada L., ops, CI"))
		Expect(shown(b.Status.Merge)).To(Equal([]v1alpha1.ResolvedAccessLevel{
			{Role: v1alpha1.AccessDeveloper, Description: "Developers + Maintainers"}, {UserID: 6, Description: "bob"},
		}))
		Expect(shown(b.Status.Unprotect)).To(Equal([]v1alpha1.ResolvedAccessLevel{{Role: v1alpha1.AccessAdmin, Description: "Instance admins"}}))
	})

	DescribeTable("is refused by the schema",
		func(change func(b *v1alpha1.ProtectedBranch), words string) {
			b := forge.ProtectedBranch("main").Of(website).Build()
			change(b)
			f.ExpectRefused(b, words)
		},
		Entry("without a project or group", func(b *v1alpha1.ProtectedBranch) { b.Spec.ProjectRef = nil }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with both", func(b *v1alpha1.ProtectedBranch) { b.Spec.GroupRef = byName("acme") }, "exactly one of the fields in [projectRef groupRef]"),
		Entry("with a reference to two things", func(b *v1alpha1.ProtectedBranch) { b.Spec.ProjectRef.Path = "acme/website" }, "exactly one of the fields in [name path id]"),
		Entry("with a level of two kinds", func(b *v1alpha1.ProtectedBranch) {
			b.Spec.Push = []v1alpha1.AccessLevel{{Role: v1alpha1.AccessDeveloper, UserRef: byName("ada")}}
		}, "exactly one of the fields in [role userRef groupRef deployKeyRef]"),
		Entry("with an empty level", func(b *v1alpha1.ProtectedBranch) { b.Spec.Push = []v1alpha1.AccessLevel{{}} }, "exactly one of"),
		Entry("with an unknown role", func(b *v1alpha1.ProtectedBranch) { b.Spec.Push = []v1alpha1.AccessLevel{forge.Role("Guest")} }, "Unsupported value"),
		Entry("with a deploy key by path", func(b *v1alpha1.ProtectedBranch) {
			b.Spec.Push = []v1alpha1.AccessLevel{{DeployKeyRef: byPath("acme/website")}}
		}, "a deploy key has no path"),
		Entry("that no user could remove", func(b *v1alpha1.ProtectedBranch) {
			b.Spec.Unprotect = []v1alpha1.AccessLevel{forge.Role(v1alpha1.AccessNoOne)}
		}, "nobody could remove the protection"),
		Entry("with No one and another level that can push", func(b *v1alpha1.ProtectedBranch) {
			b.Spec.Push = []v1alpha1.AccessLevel{forge.Role(v1alpha1.AccessNoOne), forge.Role(v1alpha1.AccessDeveloper)}
		}, "push cannot have NoOne beside other access levels"),
		Entry("with No one and another level that can merge", func(b *v1alpha1.ProtectedBranch) {
			b.Spec.Merge = []v1alpha1.AccessLevel{forge.Role(v1alpha1.AccessDeveloper), forge.Role(v1alpha1.AccessNoOne)}
		}, "merge cannot have NoOne beside other access levels"),
		Entry("without a branch", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "" }, "spec.branch"),
		Entry("with refs/heads/", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "refs/heads/prod" }, "write prod, not refs/heads/prod"),
		Entry("with a leading dash", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "-f" }, "spec.branch"),
		Entry("with a space", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "a b" }, "spec.branch"),
		Entry("with a control character", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "a\x1bb" }, "spec.branch"),
		Entry("with a question mark, which cannot stand for itself", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = "a?" }, "spec.branch"),
		Entry("with a name that is too long", func(b *v1alpha1.ProtectedBranch) { b.Spec.Branch = strings.Repeat("a", 256) }, "spec.branch"),
		Entry("with too many levels", func(b *v1alpha1.ProtectedBranch) {
			for range 51 {
				b.Spec.Push = append(b.Spec.Push, forge.Role(v1alpha1.AccessDeveloper))
			}
		}, "spec.push"),
	)

	DescribeTable("is invalid if no branch can have a name that it matches",
		func(name string, words ...string) {
			b := forge.ProtectedBranch(name).Named("odd").Of(website).Build()
			f.Create(b)
			f.ExpectStalled(b, v1alpha1.ReasonInvalid, append(words, "branch matches no branch, because")...)
		},
		Entry("with two dots", "a..b"),
		Entry("with a slash at the end", "release/"),
		Entry("with the syntax of a regular expression", "release/.*", "* alone stands for any characters"),
		Entry("with .lock behind a star", "*.lock"),
	)

	It("cannot change its branch or its project", func() {
		b := forge.ProtectedBranch("main").Of(website).Build()
		f.Create(b)
		f.ExpectChangeRefused(b, func() { b.Spec.Branch = "next" }, "branch cannot change")
		f.ExpectChangeRefused(b, func() { b.Spec.ProjectRef, b.Spec.GroupRef = nil, byName("acme") }, "cannot replace each other")
		f.Change(b, func() {
			b.Spec.AllowForcePush, b.Spec.CodeOwnerApprovalRequired = true, true
			b.Spec.Push = []v1alpha1.AccessLevel{forge.Role(v1alpha1.AccessNoOne)}
		})
		f.ExpectReady(b)
		Expect(shown(b.Status.Push)).To(ConsistOf(HaveField("Description", "No one")))
	})

	It("is not changed by a restart", func() {
		f.Run()
		b, above := forge.ProtectedBranch("main").Of(website).Build(), forge.ProtectedBranch("v*").Of(acme).Build()
		f.Create(b, above)
		f.ExpectReady(b, above)
		f.ExpectRestartWritesNothing()
	})
})

var _ = Describe("A protected branch:", func() {
	forge.DescribeTarget("a protected branch", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			b := forge.ProtectedBranch("release/*").Named(name).Build()
			b.Spec.ProjectRef, b.Spec.GroupRef = project, group
			return b
		})
})

var _ = Describe("A branch that is protected twice", func() {
	DescribeTable("is protected by the older one, and the younger one takes over when that is deleted",
		func(other *v1alpha1.Reference) {
			f.Change(website, func() { website.Spec.ID = 8 })
			f.Run()
			a := forge.ProtectedBranch("release/*").Of(website).Named("a").Build()
			b := forge.ProtectedBranch("release/*").Of(website).Named("b").Build()
			b.Spec.ProjectRef = other
			older, younger := forge.CreateInTurn(f, a, b)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "the protection of release/* in acme/website", "held by ProtectedBranch "+older.Name)
			f.Delete(older)
			f.ExpectReady(younger)
		},
		Entry("by name", byName("website")),
		Entry("by full path", byPath("Acme/Website")),
		Entry("by id", byID(8)),
	)

	It("can have rules with different names, in different projects, and in a group above", func() {
		other := forge.Project("other").In(acme).Build()
		f.Create(other)
		all := []*v1alpha1.ProtectedBranch{
			forge.ProtectedBranch("main").Of(website).Named("a").Build(), forge.ProtectedBranch("ma*").Of(website).Named("b").Build(),
			forge.ProtectedBranch("Main").Of(website).Named("c").Build(), forge.ProtectedBranch("main").Of(other).Named("d").Build(),
			forge.ProtectedBranch("main").Of(acme).Named("e").Build(),
		}
		for _, b := range all {
			f.Create(b)
		}
		for _, b := range all {
			f.ExpectReady(b)
		}
	})

	It("is protected by a declared protection rather than by the one that the project created, whatever their age", func() {
		made := forge.ProtectedBranch("main").Of(website).Named("made").Build()
		made.Labels = map[string]string{v1alpha1.LabelDefaultProtection: "true"}
		f.Create(made)
		f.ExpectReady(made)
		declared := forge.ProtectedBranch("main").Of(website).Named("declared").Build()
		f.Create(declared)
		f.ExpectReady(declared)
		f.ExpectStalled(made, v1alpha1.ReasonAlreadyExists, "declared")
	})

	It("is not protected by a protection in another namespace, which does not block others either", func() {
		elsewhere := forge.ProtectedBranch("main").Of(website).Build()
		elsewhere.Namespace, elsewhere.Spec.ProjectRef = f.NewNamespace(), byPath("acme/website")
		b := forge.ProtectedBranch("main").Of(website).Build()
		f.Create(elsewhere, b)
		f.ExpectWaiting(elsewhere, v1alpha1.ReasonReferenceNotFound)
		f.ExpectReady(b)
	})
})
