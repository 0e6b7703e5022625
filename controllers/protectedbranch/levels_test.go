package protectedbranch_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

func toUser(r *v1alpha1.Reference) v1alpha1.AccessLevel  { return v1alpha1.AccessLevel{UserRef: r} }
func toGroup(r *v1alpha1.Reference) v1alpha1.AccessLevel { return v1alpha1.AccessLevel{GroupRef: r} }
func toKey(r *v1alpha1.Reference) v1alpha1.AccessLevel   { return v1alpha1.AccessLevel{DeployKeyRef: r} }

var _ = Describe("An access level", func() {
	var other string
	BeforeEach(func() {
		other = f.NewNamespace()
		bolt := forge.Group("bolt").In(other).ID(20).Build()
		app := forge.Project("app").In(bolt).Build()
		sibling := forge.Project("sibling").In(acme).Build()
		f.Change(acme, func() { acme.Spec.ID = 10 })
		f.Create(bolt, app, sibling, forge.User("ada").ID(5).Build(), forge.Group("ops").In(namespace).ID(11).Build(),
			forge.DeployKey("ci").Of(website).ID(30).Build(), forge.DeployKey("of-sibling").Of(sibling).ID(31).Build(),
			forge.DeployKey("of-app").Of(app).ID(32).Build())
	})

	DescribeTable("resolves",
		func(level v1alpha1.AccessLevel, want v1alpha1.ResolvedAccessLevel) {
			b := forge.ProtectedBranch("main").Of(website).Push(level).Build()
			f.Create(b)
			f.ExpectReady(b)
			Expect(shown(b.Status.Push)).To(Equal([]v1alpha1.ResolvedAccessLevel{want}))
		},
		Entry("a user by name", toUser(byName("ada")), v1alpha1.ResolvedAccessLevel{UserID: 5, Description: "ada"}),
		Entry("a user by username", toUser(byPath("ADA")), v1alpha1.ResolvedAccessLevel{UserID: 5, Description: "ada"}),
		Entry("a user by id", toUser(byID(5)), v1alpha1.ResolvedAccessLevel{UserID: 5, Description: "ada"}),
		Entry("a group of the namespace by name", toGroup(byName("ops")), v1alpha1.ResolvedAccessLevel{GroupID: 11, Description: "ops"}),
		Entry("a group of the namespace by path", toGroup(byPath("ops")), v1alpha1.ResolvedAccessLevel{GroupID: 11, Description: "ops"}),
		Entry("the group above by id", toGroup(byID(10)), v1alpha1.ResolvedAccessLevel{GroupID: 10, Description: "acme"}),
		Entry("a deploy key of the project by name", toKey(byName("ci")), v1alpha1.ResolvedAccessLevel{DeployKeyID: 30, Description: "ci"}),
		Entry("a deploy key of the project by id", toKey(byID(30)), v1alpha1.ResolvedAccessLevel{DeployKeyID: 30, Description: "ci"}),
	)

	DescribeTable("permits no one if it does not resolve, and does not affect the others",
		func(level v1alpha1.AccessLevel, words string) {
			b := forge.ProtectedBranch("main").Of(website).Push(forge.Role(v1alpha1.AccessDeveloper), level).Merge(toUser(byName("ada"))).Build()
			f.Create(b)
			f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "push[1]: "+words)
			Expect(shown(b.Status.Push)).To(ConsistOf(HaveField("Role", v1alpha1.AccessDeveloper)))
			Expect(shown(b.Status.Merge)).To(ConsistOf(HaveField("UserID", BeEquivalentTo(5))))
		},
		Entry("a user that does not exist", toUser(byName("nobody")), "user nobody: not found"),
		Entry("a group that does not exist", toGroup(byPath("acme/nowhere")), "group acme/nowhere: not found"),
		Entry("a group of another namespace by path", toGroup(byPath("bolt")), "group bolt: not found"),
		Entry("a group of another namespace by id", toGroup(byID(20)), "group with id 20: not found"),
		Entry("a deploy key that does not exist", toKey(byName("none")), "deploy key none: not found"),
		Entry("a deploy key of another project", toKey(byName("of-sibling")), "deploy key of-sibling of acme/website: not found"),
		Entry("a deploy key of another project by id", toKey(byID(31)), "deploy key with id 31 of acme/website: not found"),
		Entry("a deploy key of another namespace", toKey(byID(32)), "deploy key with id 32: not found"),
	)

	It("can name a group of another namespace that the project is in", func() {
		f.Change(acme, func() { acme.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll} })
		below := forge.Group("below").In(other).BelowPath("acme").Build()
		deep := forge.Project("deep").In(below).Build()
		b := forge.ProtectedBranch("main").Of(deep).Push(toGroup(byPath("acme"))).Build()
		beside := forge.ProtectedBranch("next").Of(deep).Push(toGroup(byPath("ops"))).Build()
		f.Create(below, deep, b, beside)
		f.ExpectReady(b)
		Expect(shown(b.Status.Push)).To(ConsistOf(HaveField("GroupID", BeEquivalentTo(10))))
		f.ExpectWaiting(beside, v1alpha1.ReasonReferenceNotFound, "push[0]: group ops: not found")
	})

	It("lets the members of a group through until the share with it ends", func() {
		ends := f.Clock.Now().Add(time.Hour)
		f.Change(website, func() {
			website.Spec.SharedWith = []v1alpha1.Share{{
				GroupRef: *byPath("bolt"), Role: v1alpha1.RoleDeveloper, ExpiresAt: &metav1.Time{Time: ends},
			}}
		})
		b := forge.ProtectedBranch("main").Of(website).Push(toGroup(byPath("bolt"))).Merge(toUser(byName("nobody"))).Build()
		f.Create(b)
		result, err := f.Reconcile(b)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(time.Hour))
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "merge[0]: user nobody: not found")
		toNoGroup := forge.ProtectedBranch("next").Of(website).Push(toUser(byPath("ada"))).Build()
		f.Create(toNoGroup)
		result, err = f.Reconcile(toNoGroup)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(BeZero(), "the end of a share changes nothing")
		Expect(shown(b.Status.Push)).To(ConsistOf(HaveField("GroupID", BeEquivalentTo(20))))
		f.Clock.SetTime(ends)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "push[0]: group bolt: not found")
		Expect(b.Status.Push).To(BeEmpty())
	})

	It("resolves as soon as the object that it names appears, changes or is deleted", func() {
		f.Run()
		b := forge.ProtectedBranch("main").Of(website).Push(toUser(byPath("grace"))).
			Merge(toGroup(byPath("ops/deep"))).Unprotect(toKey(byName("cd"))).Build()
		f.Create(b)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "push[0]: user grace: not found")
		grace := forge.User("grace").Build()
		f.Create(grace)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "merge[0]: group ops/deep: not found")
		Expect(b.Status.Push).To(HaveLen(1))
		deep := forge.Group("deep").In(namespace).BelowPath("ops").Build()
		f.Create(deep)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "unprotect[0]: deploy key cd: not found")
		key := forge.DeployKey("cd").Of(website).Build()
		f.Create(key)
		f.ExpectReady(b)
		// Its id is allocated soon after.
		f.Eventually(b).Should(HaveField("Status.Unprotect", ConsistOf(HaveField("DeployKeyID", BeNumerically(">", 0)))))
		f.ExpectRestartWritesNothing()

		f.Change(grace, func() { grace.Spec.Name = "Grace H." })
		f.Eventually(b).Should(HaveField("Status.Push", ConsistOf(HaveField("Description", "Grace H."))))
		f.Change(grace, func() { grace.Spec.Username = "hopper" })
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "push[0]")
		Expect(b.Status.Push).To(BeEmpty())
		f.Change(grace, func() { grace.Spec.Username = "grace" })
		f.ExpectReady(b)
		f.Delete(key)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "unprotect[0]")
		f.Delete(deep)
		f.ExpectWaiting(b, v1alpha1.ReasonReferenceNotFound, "merge[0]")
	})
})
