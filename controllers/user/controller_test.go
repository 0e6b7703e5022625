package user_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/ids"
	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("A user", func() {
	forge.DescribeIDs(func() *forge.Forge { return f }, func(name string) v1alpha1.Identified { return forge.User(name).Build() })

	It("becomes ready, as an active person", func() {
		ada := forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
		Expect(ada.Spec).To(Equal(v1alpha1.UserSpec{
			ID: 1, Username: "ada", Type: v1alpha1.UserPerson, State: v1alpha1.UserActive,
		}))
		Expect(f.Events()).To(BeEmpty(), "that all goes well is no news")
	})

	It("is ready even if they are blocked", func() {
		eve := forge.User("eve").Blocked().Build()
		f.Create(eve)
		f.ExpectReady(eve)
	})

	It("is gone at once when deleted", func() {
		ada := forge.User("ada").Build()
		f.Create(ada)
		f.ExpectReady(ada)
		f.Delete(ada)
		f.ExpectGone(ada)
	})

	DescribeTable("gives way to an older one that claims the same",
		func(first, second *v1alpha1.User, claim string) {
			f.Create(first, second)
			older, younger := forge.ByAge(first, second)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, claim, "held by User "+older.Name)
			Expect(f.Events()).To(ConsistOf(ContainSubstring("Warning AlreadyExists " + younger.Name)))

			f.Delete(older)
			f.ExpectReady(younger)
			Expect(f.Events()).To(HaveLen(2))
			Expect(f.Events()[1]).To(HavePrefix("Normal Ready " + younger.Name))
		},
		Entry("username", forge.User("ada").Build(), forge.User("ada").Named("countess").Build(), "username ada"),
		Entry("username in other letters", forge.User("ada").Build(), forge.User("ADA").Named("countess").Build(), "username "),
		Entry("address", forge.User("ada").Email("a@example.org").Build(), forge.User("bob").Email("a@example.org").Build(), "email a@example.org"),
		Entry("address in other letters", forge.User("ada").Email("a@example.org").Build(), forge.User("bob").Email("A@Example.Org").Build(), "email "),
	)

	Context("while the controllers run", func() {
		var older, younger *v1alpha1.User
		BeforeEach(func() {
			f.Run()
			a, b := forge.User("ada").Email("ada@example.org").Build(), forge.User("ada").Named("countess").Email("ada@example.org").Build()
			older, younger = forge.CreateInTurn(f, a, b)
			f.ExpectReady(older)
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "username")
		})

		It("takes over when the holder goes", func() {
			f.Change(younger, func() { younger.Spec.Email = "" })
			f.Delete(older)
			f.ExpectReady(younger)
		})

		It("takes over when the holder gets another username and address", func() {
			f.Change(older, func() { older.Spec.Username = "byron" })
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "email")
			f.Change(older, func() { older.Spec.Email = "" })
			f.ExpectReady(older, younger)
			f.Change(younger, func() { younger.Spec.Username = "Byron" })
			f.ExpectStalled(younger, v1alpha1.ReasonAlreadyExists, "username Byron")
			f.Change(older, func() { older.Spec.Username = "lord" })
			f.ExpectReady(older, younger)
		})

		It("says in an event what is wrong", func() {
			Eventually(func(g Gomega) {
				var events corev1.EventList
				g.Expect(f.Live().List(GinkgoT().Context(), &events)).To(Succeed())
				g.Expect(events.Items).To(ContainElement(And(
					HaveField("InvolvedObject.UID", younger.UID),
					HaveField("Reason", v1alpha1.ReasonAlreadyExists),
					HaveField("Message", ContainSubstring(older.Name)))))
			}).Should(Succeed())
		})

		It("is not changed by a restart", func() {
			f.ExpectRestartWritesNothing()
		})
	})

	It("says what is wrong with the counter of ids, and continues when the counter is corrected", func() {
		counters := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: ids.ConfigMap}}
		counters.Data = map[string]string{"User": "many"}
		f.Create(counters)
		ada := forge.User("ada").Build()
		f.Create(ada)
		f.ExpectFailing(ada, v1alpha1.ReasonFailed, "ConfigMap", `"many"`)
		f.Change(counters, func() { counters.Data["User"] = "42" })
		f.ExpectReady(ada)
		Expect(ada.Status.ID).To(BeEquivalentTo(42))
	})

	DescribeTable("is refused by the API server",
		func(change func(*v1alpha1.UserSpec), words ...string) {
			ada := forge.User("ada").Build()
			change(&ada.Spec)
			f.ExpectRefused(ada, words...)
		},
		Entry("without a username", func(s *v1alpha1.UserSpec) { s.Username = "" }, "spec.username"),
		Entry("with a username of one letter", func(s *v1alpha1.UserSpec) { s.Username = "a" }, "spec.username"),
		Entry("with a username that is too long", func(s *v1alpha1.UserSpec) { s.Username = strings.Repeat("a", 256) }, "spec.username"),
		Entry("with a slash in the username", func(s *v1alpha1.UserSpec) { s.Username = "a/b" }, "spec.username"),
		Entry("with a leading dash", func(s *v1alpha1.UserSpec) { s.Username = "-ada" }, "spec.username"),
		Entry("with a trailing dot", func(s *v1alpha1.UserSpec) { s.Username = "ada." }, "spec.username"),
		Entry("with a newline in the username", func(s *v1alpha1.UserSpec) { s.Username = "ada\nadmin" }, "spec.username"),
		Entry("with a trailing newline in the username", func(s *v1alpha1.UserSpec) { s.Username = "ada\n" }, "spec.username"),
		Entry("with a name that is too long", func(s *v1alpha1.UserSpec) { s.Name = strings.Repeat("a", 256) }, "spec.name"),
		Entry("with no @ in the address", func(s *v1alpha1.UserSpec) { s.Email = "ada.example.org" }, "spec.email"),
		Entry("with a space in the address", func(s *v1alpha1.UserSpec) { s.Email = "a da@example.org" }, "spec.email"),
		Entry("with an address that is too long", func(s *v1alpha1.UserSpec) { s.Email = strings.Repeat("a", 250) + "@b.cd" }, "spec.email"),
		Entry("with an unknown type", func(s *v1alpha1.UserSpec) { s.Type = "Cat" }, "spec.type"),
		Entry("with an unknown state", func(s *v1alpha1.UserSpec) { s.State = "Asleep" }, "spec.state"),
		Entry("with no Kubernetes name", func(s *v1alpha1.UserSpec) { s.Kubernetes = &v1alpha1.KubernetesIdentity{} }, "spec.kubernetes.username"),
	)
})
