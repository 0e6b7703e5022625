package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/test/manifest"
	"github.com/forgeplane/forgeplane/test/patience"
)

// api is a client of the cluster's administrator. Specs that do not show kubectl use it, since a start of kubectl takes as long as many requests.
var api client.Client

func connect() {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", admin.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.Timeout = patience.Wait
	api, err = client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
}

// apply applies manifests like "kubectl apply --server-side --force-conflicts".
func apply(manifests string) {
	GinkgoHelper()
	objects, err := manifest.Read(strings.NewReader(manifests))
	Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		Expect(api.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership)).To(Succeed())
	}
}

// reference returns an empty object of Forgeplane with the kind and name of an object as in "project/app".
func reference(namespace, object string) *unstructured.Unstructured {
	GinkgoHelper()
	kind, name, _ := strings.Cut(object, "/")
	gvk, err := api.RESTMapper().KindFor(v1alpha1.GroupVersion.WithResource(schema.ParseGroupResource(strings.ToLower(kind)).Resource))
	Expect(err).NotTo(HaveOccurred())
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// list returns the objects of a kind of Forgeplane.
func list(kind string, options ...client.ListOption) []unstructured.Unstructured {
	GinkgoHelper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(reference("", kind).GroupVersionKind())
	Expect(api.List(context.Background(), all, options...)).To(Succeed())
	return all.Items
}

// secrets returns the Secrets in a namespace.
func secrets(namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	Expect(api.List(context.Background(), all, client.InNamespace(namespace))).To(Succeed())
	return all.Items
}

// patch merges a patch into an object.
func patch(namespace, object, patch string) {
	GinkgoHelper()
	Expect(api.Patch(context.Background(), reference(namespace, object), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// show fills a template of kubectl, such as "{.spec.id}", with the fields of an object.
func show(namespace, object, template string) string {
	GinkgoHelper()
	o := reference(namespace, object)
	Expect(api.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	return fill(o, template)
}

func fill(o *unstructured.Unstructured, template string) string {
	GinkgoHelper()
	path := jsonpath.New("template").AllowMissingKeys(true)
	Expect(path.Parse(template)).To(Succeed())
	var text strings.Builder
	Expect(path.Execute(&text, o.Object)).To(Succeed())
	return text.String()
}

// wait waits until an object shows a text.
func wait(namespace, object, template, text string) {
	GinkgoHelper()
	Eventually(show).WithArguments(namespace, object, template).WithPolling(polling).Should(Equal(text), "%s of %s", template, object)
}

// reason is the template of the reason why an object is or is not Ready.
const reason = `{.status.conditions[?(@.type=="Ready")].reason}`

// waitReady waits until objects are Ready. A kind without a name stands for all its objects: at least one must exist.
func waitReady(namespace string, objects ...string) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(func(g Gomega) {
			all := []unstructured.Unstructured{*reference(namespace, object)}
			if strings.Contains(object, "/") {
				g.Expect(api.Get(context.Background(), client.ObjectKeyFromObject(&all[0]), &all[0])).To(Succeed())
			} else {
				all = list(object, client.InNamespace(namespace))
			}
			g.Expect(all).NotTo(BeEmpty(), object)
			for i := range all {
				conditions := fill(&all[i], `{.status.conditions}`)
				g.Expect(fill(&all[i], `{.status.conditions[?(@.type=="Ready")].status} {.status.observedGeneration}`)).
					To(Equal(fill(&all[i], "True {.metadata.generation}")), "%s %s: %s", object, all[i].GetName(), conditions)
			}
		}).WithPolling(polling).Should(Succeed())
	}
}
