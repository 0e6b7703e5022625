package membership_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A membership", func() {
	var ada *v1alpha1.User
	var acme, web *v1alpha1.Group
	var site *v1alpha1.Project
	BeforeEach(func() {
		ada = forge.User("ada").Build()
		acme = forge.Group("acme").In(namespace).Build()
		web = forge.Group("web").Below(acme).Build()
		site = forge.Project("site").In(web).Build()
	})
	// given creates all of them, without a repository, which memberships do not need.
	given := func() {
		GinkgoHelper()
		f.Create(ada, acme, web, site)
		f.ExpectReady(ada, acme, web)
		f.ExpectWaiting(site, v1alpha1.ReasonStorageUnavailable)
	}

	It("becomes ready in a group, and shows the role", func() {
		given()
		m := forge.Membership(ada).In(web).As(v1alpha1.RoleMaintainer).Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status.UserID).To(Equal(ada.Status.ID))
		Expect(m.Status.TargetPath).To(Equal("acme/web"))
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleMaintainer))
		Expect(m.OwnerReferences).To(BeEmpty())
	})

	It("becomes ready in a project, and shows the role", func() {
		given()
		m := forge.Membership(ada).In(site).As(v1alpha1.RoleGuest).Build()
		f.Create(m)
		f.ExpectReady(m)
		Expect(m.Status.TargetPath).To(Equal("acme/web/site"))
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleGuest))
		Expect(m.OwnerReferences).To(BeEmpty())
	})

	DescribeTable("names its user",
		func(user func() v1alpha1.Reference) {
			given()
			m := forge.Membership(ada).In(site).Build()
			m.Spec.UserRef = user()
			f.Create(m)
			f.ExpectReady(m)
			Expect(m.Status.Username).To(Equal("ada"))
		},
		Entry("by name", func() v1alpha1.Reference { return v1alpha1.Reference{Name: "ada"} }),
		Entry("by username", func() v1alpha1.Reference { return v1alpha1.Reference{Path: "Ada"} }),
		Entry("by id", func() v1alpha1.Reference { return v1alpha1.Reference{ID: ada.Spec.ID} }),
	)

	DescribeTable("shows the highest of its own role and the roles above it",
		func(ofAcme, ofWeb, ofSite, effective v1alpha1.Role) {
			given()
			inAcme := forge.Membership(ada).In(acme).As(ofAcme).Build()
			inWeb := forge.Membership(ada).In(web).As(ofWeb).Build()
			inSite := forge.Membership(ada).In(site).As(ofSite).Build()
			f.Create(inAcme, inWeb, inSite)
			f.ExpectReady(inAcme, inWeb, inSite)
			Expect(inAcme.Status.EffectiveRole).To(Equal(ofAcme), "nothing reaches up")
			Expect(inSite.Status.EffectiveRole).To(Equal(effective))
		},
		Entry("its own role", v1alpha1.RoleGuest, v1alpha1.RoleReporter, v1alpha1.RoleOwner, v1alpha1.RoleOwner),
		Entry("the role in the group", v1alpha1.RoleGuest, v1alpha1.RoleMaintainer, v1alpha1.RoleDeveloper, v1alpha1.RoleMaintainer),
		Entry("the role in the root group", v1alpha1.RoleOwner, v1alpha1.RoleGuest, v1alpha1.RoleReporter, v1alpha1.RoleOwner),
	)

	It("follows the memberships above it", func() {
		f.Run()
		f.Create(ada, acme, web, site)
		inSite := forge.Membership(ada).In(site).As(v1alpha1.RoleGuest).Build()
		f.Create(inSite)
		f.ExpectReady(inSite)
		inAcme := forge.Membership(ada).In(acme).As(v1alpha1.RoleMaintainer).Build()
		f.Create(inAcme)
		f.Eventually(inSite).Should(HaveField("Status.EffectiveRole", v1alpha1.RoleMaintainer))
		f.Change(inAcme, func() { inAcme.Spec.Role = v1alpha1.RoleOwner })
		f.Eventually(inSite).Should(HaveField("Status.EffectiveRole", v1alpha1.RoleOwner))
		f.ExpectReady(inAcme)
		f.ExpectRestartWritesNothing()
		f.Delete(inAcme)
		f.Eventually(inSite).Should(HaveField("Status.EffectiveRole", v1alpha1.RoleGuest))
	})

	It("follows a membership above it that expires", func() {
		f.Run()
		f.Create(ada, acme, web, site)
		inSite := forge.Membership(ada).In(site).As(v1alpha1.RoleGuest).Build()
		inAcme := forge.Membership(ada).In(acme).As(v1alpha1.RoleOwner).Expires(f.Clock.Now().Add(time.Second)).Build()
		f.Create(inAcme, inSite)
		f.ExpectReady(inAcme, inSite)
		Expect(inSite.Status.EffectiveRole).To(Equal(v1alpha1.RoleOwner))
		f.Clock.SetTime(f.Clock.Now().Add(time.Second))
		f.ExpectSettled(inAcme, v1alpha1.ReasonExpired)
		f.Eventually(inSite).Should(HaveField("Status.EffectiveRole", v1alpha1.RoleGuest))
	})

	It("waits for its user and its target, and again when they are gone", func() {
		f.Run()
		inSite := forge.Membership(ada).In(site).Build()
		inSite.Spec.ProjectRef = &v1alpha1.Reference{Path: "acme/web/site"}
		f.Create(inSite)
		f.ExpectWaiting(inSite, v1alpha1.ReasonReferenceNotFound, "userRef: user ada: not found")
		f.Create(ada)
		f.ExpectWaiting(inSite, v1alpha1.ReasonReferenceNotFound, "projectRef: project acme/web/site: not found")
		f.Create(site, web, acme)
		f.ExpectReady(inSite)
		f.Eventually(site).Should(HaveField("Status.FullPath", "acme/web/site"))
		Expect(inSite.OwnerReferences).To(BeEmpty())

		By("renaming a group above it")
		f.Change(acme, func() { acme.Spec.Path = "example" })
		f.ExpectWaiting(inSite, v1alpha1.ReasonReferenceNotFound, "acme/web/site")
		Expect(inSite.Status.EffectiveRole).To(BeEmpty())
		Expect(inSite.Status.TargetPath).To(BeEmpty())
		f.Change(acme, func() { acme.Spec.Path = "acme" })
		f.ExpectReady(inSite)

		By("deleting the user")
		f.Delete(ada)
		f.ExpectWaiting(inSite, v1alpha1.ReasonReferenceNotFound, "userRef")
		Expect(inSite.Status.UserID).To(BeZero())
	})

	Context("that duplicates another one", func() {
		It("gives way to the older one, however the two name the user and the target", func() {
			given()
			a := forge.Membership(ada).In(web).As(v1alpha1.RoleDeveloper).Build()
			b := forge.Membership(ada).In(web).As(v1alpha1.RoleOwner).Named("other").Build()
			b.Spec.UserRef, b.Spec.GroupRef = v1alpha1.Reference{ID: ada.Spec.ID}, &v1alpha1.Reference{Path: "acme/web"}
			f.Create(a, b)
			older, younger := forge.ByAge(a, b)
			f.ExpectReady(older)
			Expect(older.Status.EffectiveRole).To(Equal(older.Spec.Role), "the younger one gives nothing")
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists,
				"the membership of ada in acme/web is held by Membership "+older.Name)
			f.Delete(older)
			f.ExpectReady(younger)
		})

		DescribeTable("takes over while the controllers run",
			func(inProject bool) {
				f.Run()
				f.Create(ada, acme, web, site)
				a := forge.Membership(ada).In(web).Named("one")
				b := forge.Membership(ada).In(web).Named("other")
				if inProject {
					a, b = a.In(site).Named("one"), b.In(site).Named("other")
				}
				older, younger := forge.CreateInTurn(f, a.Build(), b.Build())
				f.ExpectReady(older)
				f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, older.Name)
				f.Delete(older)
				f.ExpectReady(younger)
				f.ExpectRestartWritesNothing()
			},
			Entry("in a group", false),
			Entry("in a project", true),
		)
	})

	It("ends when it expires, and begins again when its expiry is postponed", func() {
		given()
		m := forge.Membership(ada).In(web).Expires(f.Clock.Now().Add(time.Hour)).Build()
		f.Create(m)
		result, err := f.Reconcile(m)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(time.Hour))
		f.ExpectReady(m)
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleDeveloper))

		f.Clock.SetTime(m.Spec.ExpiresAt.Time)
		f.ExpectSettled(m, v1alpha1.ReasonExpired, m.Spec.ExpiresAt.UTC().Format(time.RFC3339))
		Expect(m.Status.EffectiveRole).To(BeEmpty())
		ofMembership := slices.DeleteFunc(f.Events(), func(e string) bool { return !strings.Contains(e, " "+m.Name+":") })
		Expect(ofMembership).To(ConsistOf(HavePrefix("Normal Expired ")))

		f.Change(m, func() { m.Spec.ExpiresAt = ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Minute))) })
		f.ExpectReady(m)
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleDeveloper))
	})

	It("shows a role that the user has through a share, while it lasts", func() {
		f.Run()
		guests := forge.Group("guests").In(namespace).Build()
		f.Create(ada, acme, web, guests)
		m, invited := forge.Membership(ada).In(web).As(v1alpha1.RoleGuest).Build(), forge.Membership(ada).In(guests).As(v1alpha1.RoleOwner).Build()
		f.Create(m)
		f.ExpectReady(m)
		shows := func(r v1alpha1.Role) {
			GinkgoHelper()
			f.Eventually(m).Should(HaveField("Status.EffectiveRole", r))
		}
		shows(v1alpha1.RoleGuest)
		share := func(r v1alpha1.Role, expires *metav1.Time) []v1alpha1.Share {
			return []v1alpha1.Share{{GroupRef: v1alpha1.Reference{Name: "guests"}, Role: r, ExpiresAt: expires}}
		}
		f.Change(acme, func() { acme.Spec.SharedWith = share(v1alpha1.RoleDeveloper, nil) })
		f.Create(invited)
		shows(v1alpha1.RoleDeveloper)
		f.Change(acme, func() { acme.Spec.SharedWith = share(v1alpha1.RoleMaintainer, nil) })
		shows(v1alpha1.RoleMaintainer)
		f.Change(acme, func() { acme.Spec.SharedWith = nil })
		shows(v1alpha1.RoleGuest)
		f.Change(acme, func() { acme.Spec.SharedWith = share(v1alpha1.RoleMaintainer, nil) })
		shows(v1alpha1.RoleMaintainer)
		f.Delete(invited)
		shows(v1alpha1.RoleGuest)

		By("moving the invited group below one whose members include the user")
		club := forge.Group("club").In(namespace).Build()
		f.Create(club, forge.Membership(ada).In(club).As(v1alpha1.RoleOwner).Build())
		f.Change(guests, func() { guests.Spec.ParentRef = &v1alpha1.Reference{Name: "club"} })
		shows(v1alpha1.RoleMaintainer)
		f.Delete(guests)
		shows(v1alpha1.RoleGuest)
	})

	It("shows a role that the user has through a share until the share expires", func() {
		guests := forge.Group("guests").In(namespace).Build()
		f.Create(guests)
		f.ExpectReady(guests)
		web.Spec.SharedWith = []v1alpha1.Share{{
			GroupRef: v1alpha1.Reference{Name: "guests"}, Role: v1alpha1.RoleDeveloper, ExpiresAt: ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Hour))),
		}}
		given()
		invited, m := forge.Membership(ada).In(guests).As(v1alpha1.RoleOwner).Build(), forge.Membership(ada).In(web).As(v1alpha1.RoleGuest).Build()
		f.Create(invited, m)
		f.ExpectReady(invited, m)
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleDeveloper))
		result, err := f.Reconcile(m)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(Equal(time.Hour))
		f.Clock.SetTime(f.Clock.Now().Add(time.Hour))
		f.ExpectReady(m)
		Expect(m.Status.EffectiveRole).To(Equal(v1alpha1.RoleGuest))
	})

	It("loses its owner when a manifest is applied over it, and then outlives its group", func() {
		f.Run()
		f.Create(ada, acme)
		made := forge.Membership(ada).In(acme).As(v1alpha1.RoleDeveloper).Build()
		made.Spec.GroupRef.UID = string(acme.UID)
		f.CreateOverREST(made)
		f.ExpectReady(made)
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", acme.UID)))

		manifest := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Membership",
			"metadata": map[string]any{"name": made.Name, "namespace": made.Namespace},
			"spec": map[string]any{
				"groupRef": map[string]any{"name": "acme"}, "userRef": map[string]any{"name": "ada"}, "role": "Developer",
			},
		}}
		Expect(f.Live().Apply(GinkgoT().Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("kubectl"), client.ForceOwnership)).To(Succeed())
		f.Eventually(made).Should(HaveField("ObjectMeta.OwnerReferences", BeEmpty()))
		f.ExpectReady(made)
		f.Delete(acme)
		f.ExpectGone(acme)
		f.ExpectWaiting(made, v1alpha1.ReasonReferenceNotFound, "groupRef: group acme: not found")
		f.ExpectRestartWritesNothing()
	})

	It("is ready if its user is blocked", func() {
		f.Create(acme)
		eve := forge.User("eve").Blocked().Build()
		m := forge.Membership(eve).In(acme).Build()
		f.Create(eve, m)
		f.ExpectReady(eve, acme, m)
	})
})

var _ = Describe("A membership:", func() {
	var ada *v1alpha1.User
	BeforeEach(func() {
		ada = forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
	})

	forge.DescribeTarget("a membership", forge.ProjectsAndGroups, func() *forge.Forge { return f },
		func(name string, project, group *v1alpha1.Reference) v1alpha1.Targeted {
			m := forge.Membership(ada).Named(name).Build()
			m.Spec.ProjectRef, m.Spec.GroupRef = project, group
			return m
		})
})

var _ = Describe("A membership is refused by the API server", func() {
	var ada *v1alpha1.User
	var acme *v1alpha1.Group
	BeforeEach(func() {
		ada, acme = forge.User("ada").Build(), forge.Group("acme").In(namespace).Build()
	})

	DescribeTable("when it is new",
		func(change func(*v1alpha1.MembershipSpec), words ...string) {
			m := forge.Membership(ada).In(acme).Build()
			change(&m.Spec)
			f.ExpectRefused(m, words...)
		},
		Entry("and names neither group nor project", func(s *v1alpha1.MembershipSpec) { s.GroupRef = nil },
			"exactly one of the fields in [projectRef groupRef]"),
		Entry("and names a group and a project", func(s *v1alpha1.MembershipSpec) { s.ProjectRef = s.GroupRef },
			"exactly one of the fields in [projectRef groupRef]"),
		Entry("and names no user", func(s *v1alpha1.MembershipSpec) { s.UserRef = v1alpha1.Reference{} }, "spec.userRef"),
		Entry("and names a user twice", func(s *v1alpha1.MembershipSpec) { s.UserRef.Path = "ada" }, "spec.userRef"),
		Entry("and has no role", func(s *v1alpha1.MembershipSpec) { s.Role = "" }, "spec.role"),
		Entry("and has an unknown role", func(s *v1alpha1.MembershipSpec) { s.Role = "King" }, "spec.role"),
	)

	DescribeTable("when it changes",
		func(change func(*v1alpha1.MembershipSpec), words ...string) {
			m := forge.Membership(ada).In(acme).Build()
			f.Create(m)
			f.ExpectChangeRefused(m, func() { change(&m.Spec) }, words...)
		},
		Entry("its user", func(s *v1alpha1.MembershipSpec) { s.UserRef.Name = "eve" }, "userRef cannot change"),
		Entry("from a group to a project", func(s *v1alpha1.MembershipSpec) {
			s.GroupRef, s.ProjectRef = nil, &v1alpha1.Reference{Name: "site"}
		}, "projectRef and groupRef cannot replace each other"),
	)
})
