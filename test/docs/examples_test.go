package docs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/test/forge"
)

var _ = Describe("The examples", func() {
	var f *forge.Forge
	BeforeEach(func() { f = forge.New(cluster, forge.Options{}) })

	It("can be applied", func(ctx SpecContext) {
		installOthers(ctx, f.Live())
		applied := 0
		for _, p := range pages() {
			for _, text := range p.examples() {
				for _, o := range objects(p, text) {
					if n := o.GetNamespace(); n != "" {
						space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}
						Expect(client.IgnoreAlreadyExists(f.Live().Create(ctx, space))).To(Succeed())
					}
					err := f.Live().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.FieldOwner("docs"))
					Expect(err).NotTo(HaveOccurred(), "%s in %s:\n%s", o.GetName(), p.path, text)
					applied++
				}
			}
		}
		Expect(applied).To(BeNumerically(">=", 12))
	})
})

func objects(p page, text string) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		Expect(err).NotTo(HaveOccurred(), "a block of %s:\n%s", p.path, text)
		Expect(o.GetKind()).NotTo(BeEmpty(), "a block of %s is no object:\n%s", p.path, text)
		all = append(all, o)
	}
}

// installOthers installs the definitions of other projects that the examples use. Server-side apply refuses fields that a definition lacks.
func installOthers(ctx context.Context, live client.Client) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join("testdata", "crd", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		p := read(filepath.Join("test", "docs", file))
		for _, o := range objects(p, p.text) {
			Expect(live.Create(ctx, o)).To(Succeed(), p.path)
			Eventually(func() ([]any, error) {
				err := live.Get(ctx, client.ObjectKeyFromObject(o), o)
				conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				return conditions, err
			}).Should(ContainElement(And(
				HaveKeyWithValue("type", "Established"), HaveKeyWithValue("status", "True"))), p.path)
		}
	}
}
