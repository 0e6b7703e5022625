package variable_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/controllers/variable"
	"github.com/forgeplane/forgeplane/internal/audit/audittest"
	"github.com/forgeplane/forgeplane/internal/credential"
	"github.com/forgeplane/forgeplane/internal/frame"
	valid "github.com/forgeplane/forgeplane/internal/variable"
	"github.com/forgeplane/forgeplane/test/forge"
)

// store finds the values that are in force.
func store() *credential.Store { return credential.NewStore(f.Live(), forge.PlatformNamespace) }

// valueOf returns the value in force, or an empty string if the variable has no value.
func valueOf(v *v1alpha1.Variable) string {
	GinkgoHelper()
	f.Refresh(v)
	value, _, err := store().Variable(GinkgoT().Context(), v)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// expectValue waits until a value is in force.
func expectValue(v *v1alpha1.Variable, value string) {
	GinkgoHelper()
	Eventually(func() string { return valueOf(v) }).Should(Equal(value))
}

// give stores a value as a server does for a REST caller.
func give(v *v1alpha1.Variable, value string) *corev1.Secret {
	GinkgoHelper()
	s := store().New(v1alpha1.SecretOfVariable, v, map[string][]byte{credential.ValueKey: []byte(value)})
	f.Create(s)
	before := v.DeepCopy()
	v.Status.SecretRef.Name = s.Name
	Expect(f.Live().Status().Patch(GinkgoT().Context(), v, client.MergeFrom(before))).To(Succeed())
	f.Refresh(v)
	return s
}

// behind is a cache that shows no Secret yet.
type behind struct{ client.Reader }

// Get implements client.Reader.
func (behind) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

var _ = Describe("The value of a variable", func() {
	It("is copied from a labelled Secret, follows its changes, and is withdrawn with it", func() {
		f.Run()
		v := forge.Variable("host", "HOST").Of(website).Secret("ci", "HOST").Build()
		f.Create(v)
		f.ExpectWaiting(v, v1alpha1.ReasonReferenceNotFound, "secretRef: there is no Secret ci with the label forgeplane.dev/secret=variable",
			"kubectl label secret ci --namespace "+v.Namespace+" forgeplane.dev/secret=variable")
		s := secret(v.Namespace, "ci", "HOST", "first")
		s.Labels = nil
		f.Create(s)
		f.ExpectWaiting(v, v1alpha1.ReasonReferenceNotFound, "there is no Secret ci with the label")
		f.Change(s, func() { s.Labels = map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfVariable} })
		f.ExpectReady(v)
		expectValue(v, "first")
		copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: forge.PlatformNamespace, Name: v.Status.SecretRef.Name}}
		f.Refresh(copied)
		Expect(copied.Data).To(Equal(map[string][]byte{"value": []byte("first")}))
		f.ExpectRestartWritesNothing()

		f.Change(s, func() { s.Data["HOST"] = []byte("second") })
		expectValue(v, "second")
		f.Change(s, func() { s.Data = map[string][]byte{"OTHER": []byte("third")} })
		f.ExpectWaiting(v, v1alpha1.ReasonReferenceNotFound, "secretRef: Secret ci has no key HOST")
		Expect(valueOf(v)).To(BeEmpty())
		f.ExpectGone(copied)
		f.Change(v, func() { v.Spec.SecretRef.Key = "OTHER" })
		f.ExpectReady(v)
		expectValue(v, "third")
		f.ExpectRestartWritesNothing()

		f.Delete(s)
		f.ExpectWaiting(v, v1alpha1.ReasonReferenceNotFound, "there is no Secret ci")
		f.ExpectGone(copied)
		f.Create(secret(v.Namespace, "ci", "OTHER", ""))
		f.ExpectReady(v)
		Expect(valueOf(v)).To(BeEmpty(), "an empty value is a value")
		f.Delete(v)
		f.ExpectGone(v, copied)
	})

	It("is not copied from a Secret for another use", func() {
		s := secret(acme.Namespace, "ci", "value", "some-value")
		s.Labels[v1alpha1.LabelSecret] = v1alpha1.SecretOfRemoteMirror
		v := forge.Variable("host", "HOST").Of(website).Secret("ci", "value").Build()
		f.Create(s, v)
		f.ExpectWaiting(v, v1alpha1.ReasonReferenceNotFound, "there is no Secret ci with the label forgeplane.dev/secret=variable")
	})

	It("must be possible to mask if it is masked, and must not be too long", func() {
		f.Run()
		s := secret(acme.Namespace, "ci", "value", "short")
		v := forge.Variable("host", "HOST").Of(website).Masked().Secret("ci", "value").Build()
		f.Create(s, v)
		left := "the variable is left out of pipelines because of its value: it cannot be masked: "
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, left+"it is shorter than 8 characters")
		f.Change(s, func() { s.Data["value"] = []byte("first-line\nsecond-line") })
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, left+"it has more than one line")
		f.Change(s, func() { s.Data["value"] = []byte("with$HOME") })
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, left+"it has characters other than letters, digits and _ + = / @ : . ~ -")
		f.Change(v, func() { v.Spec.Raw = true })
		f.ExpectReady(v)
		f.Change(s, func() { s.Data["value"] = []byte(strings.Repeat("a", valid.MaxValue+1)) })
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, "secretRef: the value under the key value of Secret ci cannot be used: it is longer than 64 KiB")
		Expect(v.Status.SecretRef.Name).To(BeEmpty(), "it is not stored in the platform")
		f.Change(s, func() { s.Data["value"] = []byte("long-enough") })
		f.ExpectReady(v)
		f.ExpectRestartWritesNothing()
	})

	It("can be set over REST, and is then missing for a moment", func() {
		v := forge.Variable("host", "HOST").Of(website).Masked().Build()
		f.CreateOverREST(v)
		f.ExpectWaiting(v, v1alpha1.ReasonProgressing, "the variable has no value yet")
		Expect(f.Events()).NotTo(ContainElement(HavePrefix("Warning")), "a server creates the Secret next")
		s := give(v, "set-over-rest")
		f.ExpectReady(v)
		f.Change(s, func() { s.Data["value"] = []byte("short") })
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, "it is shorter than 8 characters")
		f.Delete(s)
		f.Clock.SetTime(v.CreationTimestamp.Add(time.Hour))
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, "the variable has no value: name a Secret in secretRef, or set the value over REST")
		Expect(v.Status.SecretRef.Name).To(BeEmpty())
	})

	It("stays in force if the cache shows the variable before the Secret", func() {
		v := forge.Variable("host", "HOST").Of(website).Build()
		f.CreateOverREST(v)
		give(v, "set-over-rest")
		f.Refresh(v)
		c := variable.New(
			frame.Base{Client: f.Live(), Events: &events.FakeRecorder{}, Catalog: f.Catalog, IDs: f.IDs},
			variable.Options{Secrets: f.Live(), Store: credential.NewStore(behind{f.Live()}, forge.PlatformNamespace), Namespace: forge.PlatformNamespace, Clock: f.Clock})
		Expect(c.Reconcile(GinkgoT().Context(), v)).Error().NotTo(HaveOccurred())
		Expect(valueOf(v)).To(Equal("set-over-rest"))
	})

	It("is replaced by a declared one, and withdrawn when the declaration no longer names a Secret", func() {
		v := forge.Variable("host", "HOST").Of(website).Build()
		f.Create(v)
		give(v, "set-over-rest")
		f.ExpectReady(v)
		f.Create(secret(v.Namespace, "ci", "value", "declared"))
		f.Change(v, func() { v.Spec.SecretRef = &v1alpha1.VariableSecretReference{Name: "ci"} })
		f.ExpectReady(v)
		Expect(valueOf(v)).To(Equal("declared"))
		f.Change(v, func() { v.Spec.SecretRef = nil })
		f.Clock.SetTime(v.CreationTimestamp.Add(time.Hour))
		f.ExpectStalled(v, v1alpha1.ReasonInvalid, "the variable has no value")
		Expect(valueOf(v)).To(BeEmpty())
	})

	It("appears in no status, event and audit log", func() {
		lines := audittest.Open(GinkgoTB())
		f = forge.New(cluster, forge.Options{Audit: lines.Log})
		const value, wrong = "a-value-that-nobody-sees", "a value that cannot be masked"
		s := secret(acme.Namespace, "ci", "value", wrong)
		v := forge.Variable("host", "HOST").Of(website).Masked().Secret("ci", "value").Build()
		f.Create(s, v)
		f.ExpectStalled(v, v1alpha1.ReasonInvalid)
		f.Change(s, func() { s.Data["value"] = []byte(value) })
		f.ExpectReady(v)
		Expect(valueOf(v)).To(Equal(value))
		Expect(lines.Events()).To(ContainElement(And(HaveField("Action", "copy"), HaveField("Objects", ConsistOf(HaveField("Name", v.Status.SecretRef.Name))))))
		for _, text := range []string{fmt.Sprint(v), fmt.Sprint(f.Events()), string(lines.Text())} {
			Expect(text).NotTo(Or(ContainSubstring(value), ContainSubstring(wrong)))
		}
	})
})
