package terminal

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kubectl runs kubectl, which must succeed, and returns its standard output without the last newline.
func (t Terminal) Kubectl(args ...string) string {
	GinkgoHelper()
	return t.Do("kubectl", args...)
}

// Apply applies manifests with "kubectl apply", and returns its output.
func (t Terminal) Apply(manifests string) string {
	GinkgoHelper()
	return t.DoWith(manifests, "kubectl", "apply", "--filename=-")
}

// WaitReady waits until the objects that kubectl's arguments select are Ready.
func (t Terminal) WaitReady(args ...string) {
	GinkgoHelper()
	t.Kubectl(append([]string{"wait", "--for=condition=Ready", "--timeout=60s"}, args...)...)
}

// Get returns the single object that the arguments of kubectl select.
func (t Terminal) Get(args ...string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(json.Unmarshal([]byte(t.Kubectl(append([]string{"get", "--output=json"}, args...)...)), &object.Object)).To(Succeed())
	return object
}

// List returns the objects that kubectl's arguments select.
func (t Terminal) List(args ...string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	Expect(json.Unmarshal([]byte(t.Kubectl(append([]string{"get", "--output=json"}, args...)...)), list)).To(Succeed())
	return list.Items
}

// Field returns a field of the single object that the arguments of kubectl select, as text. It is empty if the field does not exist. The field is a
// JSONPath such as ".status.fullPath".
func (t Terminal) Field(field string, args ...string) string {
	GinkgoHelper()
	return t.Kubectl(append([]string{"get", "--output=jsonpath={" + field + "}"}, args...)...)
}
