package controlplane_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/patience"
)

func start(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	options.Ephemeral = true
	c, err := controlplane.Start(t.Context(), options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// widgets is a kind that exists only in this test.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "test.example",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
}

func installWidgets(_ context.Context, administrator *rest.Config) error {
	_, err := envtest.InstallCRDs(administrator, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()},
	})
	return err
}

func widget(namespace, name string, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetAPIVersion("test.example/v1")
	w.SetKind("Widget")
	w.SetNamespace(namespace)
	w.SetName(name)
	for _, owner := range owners {
		w.SetOwnerReferences(append(w.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
		}))
	}
	return w
}

func TestControlPlane_behavesLikeACluster(t *testing.T) {
	c := start(t, controlplane.Options{Directory: t.TempDir(), Prepare: installWidgets})
	administrator := clientOf(t, c.Administrator())
	namespace := func(t *testing.T, name string) *corev1.Namespace {
		t.Helper()
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		NewWithT(t).Expect(administrator.Create(t.Context(), n)).To(Succeed())
		return n
	}
	gone := func(g Gomega, object client.Object) {
		g.Expect(administrator.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Satisfy(apierrors.IsNotFound))
	}

	t.Run("a namespace is deleted with everything in it", func(t *testing.T) {
		g := NewWithT(t)
		n := namespace(t, "doomed")
		w := widget("doomed", "inhabitant")
		g.Expect(administrator.Create(t.Context(), w)).To(Succeed())
		g.Expect(administrator.Delete(t.Context(), n)).To(Succeed())
		g.Eventually(gone).WithArguments(n).WithTimeout(patience.Wait).Should(Succeed())
		gone(g, w)
	})

	t.Run("an object is deleted with its owner", func(t *testing.T) {
		g := NewWithT(t)
		namespace(t, "family")
		owner := widget("family", "owner")
		g.Expect(administrator.Create(t.Context(), owner)).To(Succeed())
		owned := widget("family", "owned", owner)
		g.Expect(administrator.Create(t.Context(), owned)).To(Succeed())
		g.Expect(administrator.Delete(t.Context(), owner)).To(Succeed())
		g.Eventually(gone).WithArguments(owned).WithTimeout(patience.Wait).Should(Succeed())
	})

	t.Run("a role is added to the role that it aggregates to", func(t *testing.T) {
		g := NewWithT(t)
		rule := rbacv1.PolicyRule{APIGroups: []string{"test.example"}, Resources: []string{"widgets"}, Verbs: []string{"update"}}
		g.Expect(administrator.Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets-edit", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
			Rules:      []rbacv1.PolicyRule{rule},
		})).To(Succeed())
		g.Eventually(func(g Gomega) {
			edit := &rbacv1.ClusterRole{}
			g.Expect(administrator.Get(t.Context(), client.ObjectKey{Name: "edit"}, edit)).To(Succeed())
			g.Expect(edit.Rules).To(ContainElement(rule))
		}).WithTimeout(patience.Wait).Should(Succeed())
	})

	t.Run("an identity can do only what RBAC allows", func(t *testing.T) {
		g := NewWithT(t)
		namespace(t, "tenant")
		g.Expect(administrator.Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "reader"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		})).To(Succeed())
		g.Expect(administrator.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}},
		})).To(Succeed())
		config, err := c.Identity("alice")
		g.Expect(err).NotTo(HaveOccurred())
		alice := clientOf(t, config)
		g.Eventually(func() error {
			return alice.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("tenant"))
		}).Should(Succeed())
		g.Expect(alice.List(t.Context(), &corev1.SecretList{}, client.InNamespace("tenant"))).To(Satisfy(apierrors.IsForbidden))
		g.Expect(alice.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("family"))).To(Satisfy(apierrors.IsForbidden))
	})
}

func TestControlPlane_keepsObjectsAndTokensBetweenStarts(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	first := start(t, controlplane.Options{Directory: directory})
	administrator := clientOf(t, first.Administrator())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	g.Expect(administrator.Create(t.Context(), account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	g.Expect(administrator.SubResource("token").Create(t.Context(), account, request)).To(Succeed())
	g.Expect(first.Stop()).To(Succeed())

	second := start(t, controlplane.Options{Directory: directory})
	administrator = clientOf(t, second.Administrator())
	g.Expect(administrator.Get(t.Context(), client.ObjectKeyFromObject(account), account)).To(Succeed())
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}
	g.Expect(administrator.Create(t.Context(), review)).To(Succeed())
	g.Expect(review.Status.User.Username).To(Equal("system:serviceaccount:default:robot"))
}

func TestControlPlane_reportsACrashedProgram(t *testing.T) {
	g := NewWithT(t)
	c := start(t, controlplane.Options{Directory: t.TempDir()})
	for _, p := range c.Processes() {
		if p.Name() == "kube-apiserver" {
			g.Expect(syscall.Kill(p.PID(), syscall.SIGKILL)).To(Succeed())
		}
	}
	var failure error
	g.Eventually(c.Failed()).WithTimeout(patience.Wait).Should(Receive(&failure))
	g.Expect(failure).To(MatchError(ContainSubstring("kube-apiserver ended (signal: killed)")))
}

func TestStart_reportsWhyItFails(t *testing.T) {
	g := NewWithT(t)
	binaries, err := controlplane.FindBinaries()
	g.Expect(err).NotTo(HaveOccurred())
	binaries.APIServer = filepath.Join(t.TempDir(), "kube-apiserver")
	g.Expect(os.WriteFile(binaries.APIServer, []byte("#!/bin/sh\necho no such flag >&2\nexit 1\n"), 0o700)).To(Succeed())
	_, err = controlplane.Start(t.Context(), controlplane.Options{Directory: t.TempDir(), Binaries: binaries})
	g.Expect(err).To(MatchError(And(HavePrefix("starting the control plane: kube-apiserver ended (exit status 1)"), HaveSuffix("no such flag"))))
}

func TestFindBinaries_namesMissingPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	_, err := controlplane.FindBinaries()
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("kube-apiserver"), ContainSubstring("make controlplane"))))
}
