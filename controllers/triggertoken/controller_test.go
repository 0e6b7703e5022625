package triggertoken_test

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog"
	"github.com/forgeplane/forgeplane/internal/triggertoken"
	"github.com/forgeplane/forgeplane/test/forge"
)

// find returns the token of a project that has a value, or the error of the lookup.
func find(p *v1alpha1.Project, value string) (*v1alpha1.TriggerToken, error) {
	return triggertoken.ByValue(GinkgoT().Context(), f.Catalog, p, value, f.Clock.Now())
}

// expectNoValue expects that no object and no event contains any part of a value.
func expectNoValue(t *v1alpha1.TriggerToken, value string) {
	GinkgoHelper()
	f.Refresh(t)
	text, err := json.Marshal(t)
	Expect(err).NotTo(HaveOccurred())
	for _, part := range []string{value, value[:8], value[len(value)-8:]} {
		Expect(string(text)).NotTo(ContainSubstring(part))
		Expect(f.Events()).NotTo(ContainElement(ContainSubstring(part)))
	}
}

var _ = Describe("A trigger token", func() {
	var ada *v1alpha1.User
	BeforeEach(func() {
		ada = forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
	})

	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified {
		return forge.TriggerToken(name).Of(website).Build()
	})

	forge.DescribeTarget("a trigger token", forge.Projects, func() *forge.Forge { return f },
		func(name string, project, _ *v1alpha1.Reference) v1alpha1.Targeted {
			t := forge.TriggerToken(name).Build()
			t.Spec.ProjectRef = *project
			return t
		})

	It("creates no Secret while its project is not found", func() {
		t := forge.TriggerToken("deploy").Of(website).Secret("deploy", "token").Build()
		t.Namespace = f.NewNamespace()
		f.Create(t)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "projectRef")
		var secrets corev1.SecretList
		Expect(f.Live().List(GinkgoT().Context(), &secrets)).To(Succeed())
		Expect(secrets.Items).NotTo(ContainElement(HaveField("Namespace", t.Namespace)))
	})

	It("waits for its project and its owner while the controllers run", func() {
		f.Run()
		later := forge.Project("later").In(acme).Build()
		bob := forge.User("bob").Build()
		t := forge.TriggerToken("deploy").Of(later).OwnedBy(bob).Build()
		f.Create(t)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "projectRef: project later: not found")
		f.Create(later)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "ownerRef: user bob: not found")
		f.Create(bob)
		f.ExpectWaiting(t, v1alpha1.ReasonOwnerNotAllowed, "user bob is not a Maintainer")
		f.Create(forge.Membership(bob).In(later).As(v1alpha1.RoleMaintainer).Build())
		f.ExpectReady(t)
		f.ExpectRestartWritesNothing()
	})

	It("follows the role of its owner while the controllers run", func() {
		f.Run()
		t := forge.TriggerToken("deploy").Of(website).OwnedBy(ada).Build()
		f.Create(t)
		f.ExpectWaiting(t, v1alpha1.ReasonOwnerNotAllowed, "user ada is not a Maintainer")
		m := forge.Membership(ada).In(acme).As(v1alpha1.RoleMaintainer).Build()
		f.Create(m)
		f.ExpectReady(t)
		value := valueOf(t)
		Eventually(find).WithArguments(website, value).Should(HaveField("UID", t.UID))

		By("removing the role, and giving it back for an hour")
		f.Change(m, func() { m.Spec.Role = v1alpha1.RoleDeveloper })
		Expect(find(website, value)).Error().To(MatchError(catalog.ErrNotFound))
		f.ExpectWaiting(t, v1alpha1.ReasonOwnerNotAllowed, "user ada is not a Maintainer")
		f.Change(m, func() {
			m.Spec.Role, m.Spec.ExpiresAt = v1alpha1.RoleOwner, ptr.To(metav1.NewTime(f.Clock.Now().Add(time.Hour)))
		})
		f.ExpectReady(m, t)
		f.Delete(m)
		f.ExpectWaiting(t, v1alpha1.ReasonOwnerNotAllowed, "user ada is not a Maintainer")
		Expect(valueOf(t)).To(Equal(value))
	})

	It("can belong to an administrator only if they have created it themselves", func() {
		f.Run()
		root := forge.User("root").Admin().Build()
		t := forge.TriggerToken("deploy").Of(website).OwnedBy(root).Build()
		f.Create(root, forge.Membership(root).In(acme).As(v1alpha1.RoleOwner).Build(), t)
		f.ExpectWaiting(t, v1alpha1.ReasonOwnerNotAllowed, "user root is an administrator")
		before := t.DeepCopy()
		t.Status.IssuedTo = string(root.UID)
		Expect(f.Live().Status().Patch(GinkgoT().Context(), t, client.MergeFrom(before))).To(Succeed())
		f.ExpectReady(t)
		Eventually(find).WithArguments(website, valueOf(t)).Should(HaveField("UID", t.UID))
	})

	It("follows its owner while the controllers run", func() {
		f.Run()
		f.Create(forge.Membership(ada).In(acme).As(v1alpha1.RoleMaintainer).Build())
		t := forge.TriggerToken("deploy").Of(website).OwnedBy(ada).Build()
		f.Create(t)
		f.ExpectReady(t)
		value := valueOf(t)

		By("blocking and unblocking the owner")
		f.Change(ada, func() { ada.Spec.State = v1alpha1.UserBlocked })
		Expect(find(website, value)).Error().To(MatchError(catalog.ErrNotFound))
		f.ExpectWaiting(t, v1alpha1.ReasonBlocked, "user ada is blocked")
		f.Change(ada, func() { ada.Spec.State = v1alpha1.UserActive })
		f.ExpectReady(t)
		Expect(find(website, value)).To(HaveField("UID", t.UID))

		By("deleting the owner and creating it again")
		f.Delete(ada)
		f.ExpectWaiting(t, v1alpha1.ReasonReferenceNotFound, "ownerRef: user ada: not found")
		f.Create(forge.User("ada").Build())
		f.ExpectReady(t)
		Expect(valueOf(t)).To(Equal(value))
	})

	It("is deleted with its project, if it was created over REST, and with its namespace, together with its Secret", func() {
		f.NewStorage("default")
		f.Run()
		other := forge.Project("other").In(acme).Build()
		t, ofOther := forge.TriggerToken("deploy").Of(website).Build(), forge.TriggerToken("other").Of(other).Build()
		t.Spec.ProjectRef.UID = string(website.UID)
		declared := forge.TriggerToken("declared").Of(website).Build()
		f.CreateOverREST(t)
		f.Create(other, ofOther, declared)
		f.ExpectReady(website, t, other, ofOther, declared)
		s, sOther, value := secretOf(t), secretOf(ofOther), valueOf(declared)
		f.Delete(website)
		f.ExpectGone(website, t, s)
		f.ExpectReady(ofOther)
		f.ExpectWaiting(declared, v1alpha1.ReasonReferenceNotFound, "projectRef")
		Expect(find(website, value)).Error().To(MatchError(catalog.ErrNotFound))
		f.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: acme.Namespace}})
		f.ExpectGone(ofOther, sOther, other)
	})
})

var _ = Describe("A trigger token is refused by the API server", func() {
	DescribeTable("when it is new",
		func(change func(*v1alpha1.TriggerToken), words ...string) {
			t := forge.TriggerToken("deploy").Of(website).Secret("deploy", "token").Build()
			change(t)
			f.ExpectRefused(t, words...)
		},
		Entry("without a project", func(t *v1alpha1.TriggerToken) { t.Spec.ProjectRef = v1alpha1.Reference{} }, "spec.projectRef"),
		Entry("with an owner that names no user", func(t *v1alpha1.TriggerToken) { t.Spec.OwnerRef = &v1alpha1.Reference{} }, "spec.ownerRef"),
		Entry("with a description that is too long", func(t *v1alpha1.TriggerToken) { t.Spec.Description = strings.Repeat("a", 1025) }, "spec.description"),
		Entry("without the name of a Secret", func(t *v1alpha1.TriggerToken) { t.Spec.SecretRef.Name = "" }, "spec.secretRef.name"),
		Entry("with the name of a Secret elsewhere", func(t *v1alpha1.TriggerToken) { t.Spec.SecretRef.Name = "../forgeplane-system/root" },
			"this cannot be the name of a Secret"),
		Entry("with a key that a Secret cannot have", func(t *v1alpha1.TriggerToken) { t.Spec.SecretRef.Key = "a/b" }, "spec.secretRef.key"),
	)

	It("when it changes to another user", func() {
		ada := forge.User("ada").Build()
		t := forge.TriggerToken("deploy").Of(website).Build()
		f.Create(t)
		f.Change(t, func() { t.Spec.OwnerRef = &v1alpha1.Reference{Name: ada.Name} })
		f.ExpectChangeRefused(t, func() { t.Spec.OwnerRef.Name = "root" }, "ownerRef cannot change once set")
		f.ExpectChangeRefused(t, func() { t.Spec.OwnerRef = nil }, "ownerRef cannot change once set")
		f.Change(t, func() { t.Spec.Description = "another" })
	})
})
