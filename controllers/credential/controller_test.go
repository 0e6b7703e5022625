package credential

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/catalog/catalogtest"
)

const platform = "forgeplane-system"

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// safe is a platform with one Secret, which was created at noon for the TriggerToken acme/nightly.
type safe struct {
	*WithT
	t          *testing.T
	controller *Controller
	client     client.Client
	clock      *clocktesting.FakePassiveClock
	secret     *corev1.Secret
}

func newSafe(t *testing.T, objects ...client.Object) *safe {
	t.Helper()
	s := &safe{WithT: NewWithT(t), t: t, clock: clocktesting.NewFakePassiveClock(noon), secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: platform, Name: "trigger-token-1", UID: "1", CreationTimestamp: metav1.NewTime(noon),
		Labels:      map[string]string{v1alpha1.LabelSecret: v1alpha1.SecretOfTriggerToken},
		Annotations: map[string]string{v1alpha1.AnnotationHolder: "acme/nightly"},
	}}}
	s.client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(s.secret.DeepCopy()).Build()
	s.controller = New(s.client, catalogtest.New(t, objects...).Catalog(), s.clock, platform)
	return s
}

// reconcile reconciles the Secret after a time, and returns the delay until the next reconcile.
func (s *safe) reconcile(after time.Duration) time.Duration {
	s.clock.SetTime(noon.Add(after))
	result, err := s.controller.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.secret)})
	s.Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

// gone reports whether the Secret is gone.
func (s *safe) gone() bool {
	err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(s.secret), &corev1.Secret{})
	s.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err)
}

// nightly returns a TriggerToken whose status names a Secret of the platform.
func nightly(secret string) *v1alpha1.TriggerToken {
	t := &v1alpha1.TriggerToken{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "nightly", UID: "1"}}
	t.Spec.ProjectRef.Name = "app"
	t.Status.SecretRef.Name = secret
	return t
}

func TestReconcile_removesASecretUnnamedForTenMinutes(t *testing.T) {
	for title, objects := range map[string][]client.Object{
		"there is no object":              nil,
		"the object names another Secret": {nightly("trigger-token-2")},
		"another object names it":         {func() client.Object { o := nightly("trigger-token-1"); o.Name = "weekly"; return o }()},
	} {
		t.Run(title, func(t *testing.T) {
			s := newSafe(t, objects...)
			s.Expect(s.reconcile(0)).To(Equal(10 * time.Minute))
			s.Expect(s.reconcile(10*time.Minute - time.Second)).To(Equal(time.Second))
			s.Expect(s.gone()).To(BeFalse(), "who made it may be about to name it")
			s.Expect(s.reconcile(10 * time.Minute)).To(BeZero())
			s.Expect(s.gone()).To(BeTrue())
		})
	}
}

func TestReconcile_keepsASecretThatAnObjectNames(t *testing.T) {
	s := newSafe(t, nightly("trigger-token-1"))
	s.Expect(s.reconcile(0)).To(BeZero())
	s.Expect(s.reconcile(24 * time.Hour)).To(BeZero())
	s.Expect(s.gone()).To(BeFalse())
}

func TestReconcile_removesAReleasedSecretAtOnce(t *testing.T) {
	s := newSafe(t)
	s.controller.release(client.ObjectKeyFromObject(s.secret), "holder")
	s.Expect(s.reconcile(time.Second)).To(BeZero())
	s.Expect(s.gone()).To(BeTrue())
	s.Expect(s.reconcile(time.Second)).To(BeZero(), "it is gone already")
}

func TestReconcile_removesAReleasedSecretThatAppearsLater(t *testing.T) {
	s := newSafe(t)
	again := s.secret.DeepCopy()
	s.Expect(s.client.Delete(t.Context(), s.secret)).To(Succeed())
	s.controller.release(client.ObjectKeyFromObject(again), "holder")
	s.Expect(s.reconcile(time.Second)).To(Equal(lag - time.Second))
	s.Expect(s.client.Create(t.Context(), again)).To(Succeed())
	s.Expect(s.reconcile(2 * time.Second)).To(BeZero())
	s.Expect(s.gone()).To(BeTrue())
}

func TestReconcile_forgetsTheReleaseOfASecretThatStaysAway(t *testing.T) {
	s := newSafe(t)
	s.Expect(s.client.Delete(t.Context(), s.secret.DeepCopy())).To(Succeed())
	s.controller.release(client.ObjectKeyFromObject(s.secret), "holder")
	s.Expect(s.reconcile(lag)).To(BeZero())
	s.Expect(s.controller.forget(client.ObjectKeyFromObject(s.secret))).To(BeEmpty())
}

func TestReconcile_forgetsTheReleaseOfASecretHeldAgain(t *testing.T) {
	s := newSafe(t, nightly("trigger-token-1"))
	s.controller.release(client.ObjectKeyFromObject(s.secret), "holder")
	s.Expect(s.reconcile(time.Second)).To(BeZero())
	s.Expect(s.gone()).To(BeFalse())
	s.Expect(s.controller.forget(client.ObjectKeyFromObject(s.secret))).To(BeEmpty())
}
