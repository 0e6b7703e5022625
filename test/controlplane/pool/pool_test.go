package pool_test

import (
	"net"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/controlplane/pool"
	"github.com/forgeplane/forgeplane/test/patience"
)

// lease leases a control plane, and returns it with a client.
func lease(t *testing.T) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	g := NewWithT(t)
	leased, err := pool.Start(t.Context(), t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = leased.Stop() })
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(leased.Administrator(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return leased, c
}

func startPool(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	directory := t.TempDir()
	socket := filepath.Join(directory, "socket")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	g.Expect(err).NotTo(HaveOccurred())
	served := make(chan error, 1)
	go func() { served <- (&pool.Pool{Directory: directory}).Serve(listener) }()
	t.Cleanup(func() {
		g.Expect(listener.Close()).To(Succeed())
		g.Expect(<-served).To(Succeed())
	})
	t.Setenv(pool.Variable, socket)
}

func TestPool_restoresControlPlaneAfterLease(t *testing.T) {
	g := NewWithT(t)
	startPool(t)
	first, c := lease(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	held := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "held", Finalizers: []string{"test.example/held"}}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	g.Expect(c.Create(t.Context(), held)).To(Succeed())
	role := &rbacv1.ClusterRole{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "system:discovery"}, role)).To(Succeed())
	changed := role.DeepCopy()
	changed.Rules = nil
	g.Expect(c.Update(t.Context(), changed)).To(Succeed())
	kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "labels.forgeplane.dev"}}
	g.Expect(c.Delete(t.Context(), kind)).To(Succeed())

	second, _ := lease(t)
	g.Expect(second.URL()).NotTo(Equal(first.URL()), "no other client has a leased control plane")
	g.Expect(first.Stop()).To(Succeed())

	again, c := lease(t)
	g.Expect(again.URL()).To(Equal(first.URL()))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)).To(Satisfy(apierrors.IsNotFound))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(held), held)).To(Satisfy(apierrors.IsNotFound))
	restored := &rbacv1.ClusterRole{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(role), restored)).To(Succeed())
	g.Expect(restored.Rules).To(Equal(role.Rules))
	g.Eventually(func() error { return c.List(t.Context(), &v1alpha1.LabelList{}) }).WithTimeout(patience.Wait).Should(Succeed())
}
