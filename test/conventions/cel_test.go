package conventions_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

// judge returns what kube-apiserver would say about a change of an object of a kind, as far as the rules in CEL go.
func judge(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) func(was, is map[string]any) []string {
	t.Helper()
	g := NewWithT(t)
	internal := &apiextensions.JSONSchemaProps{}
	g.Expect(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root(crd), internal, nil)).To(Succeed())
	structural, err := schema.NewStructural(internal)
	g.Expect(err).NotTo(HaveOccurred())
	validator := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(was, is map[string]any) []string {
		errs, _ := validator.Validate(t.Context(), nil, structural, is, was, celconfig.RuntimeCELCostBudget)
		var messages []string
		for _, e := range errs {
			messages = append(messages, e.Error())
		}
		return messages
	}
}

func TestTheAPIServerTakesEveryKind(t *testing.T) {
	for kind, crd := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			// The API server fills in what it defaults before it looks.
			whole := crd.DeepCopy()
			apiextensionsv1.SetDefaults_CustomResourceDefinition(whole)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&whole.Spec)
			internal := &apiextensions.CustomResourceDefinition{}
			g.Expect(apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(whole, internal, nil)).To(Succeed())
			internal.Status.StoredVersions = []string{internal.Spec.Versions[0].Name}
			g.Expect(validation.ValidateCustomResourceDefinition(t.Context(), internal)).To(BeEmpty(), "its rules may cost too much")
		})
	}
}

// sample is the spec of the sample of a kind.
func sample(t *testing.T, kind string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(config, "samples", strings.ToLower(kind)+".yaml"))
	g.Expect(err).NotTo(HaveOccurred(), "every kind has a sample")
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object map[string]any
		asJSON, err := yaml.YAMLToJSON([]byte(document))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(utiljson.Unmarshal(asJSON, &object)).To(Succeed()) // numbers are int64, as in kube-apiserver
		if object["kind"] == kind {
			return object["spec"].(map[string]any)
		}
	}
	t.Fatalf("config/samples/%s.yaml has no %s", strings.ToLower(kind), kind)
	return nil
}

// fixes reports whether the objects of a kind cannot go over from what they are declared for to something else.
func fixes(kind string) bool {
	if kind == "AccessToken" {
		return true
	}
	return slices.ContainsFunc(v1alpha1.Kinds(), func(o v1alpha1.Object) bool {
		_, ok := o.(v1alpha1.Targeted)
		return ok && reflect.TypeOf(o).Elem().Name() == kind
	})
}

func TestAnIDCannotChangeOnceSet(t *testing.T) {
	for kind, crd := range kinds(t) {
		if _, ok := root(crd).Properties["spec"].Properties["id"]; !ok {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			spec := sample(t, kind)
			object := func(declared, inForce int64) map[string]any {
				o := map[string]any{"spec": maps.Clone(spec), "status": map[string]any{"observedGeneration": int64(-1)}}
				if declared != 0 {
					o["spec"].(map[string]any)["id"] = declared
				}
				if inForce != 0 {
					o["status"].(map[string]any)["id"] = inForce
				}
				return o
			}
			complaints := judge(t, crd)
			g.Expect(complaints(object(0, 0), object(7, 0))).To(BeEmpty(), "allocated")
			g.Expect(complaints(object(7, 7), object(7, 7))).To(BeEmpty(), "left as it is")
			g.Expect(complaints(object(7, 7), object(0, 7))).To(BeEmpty(), "dropped by a replace")
			g.Expect(complaints(object(0, 7), object(7, 7))).To(BeEmpty(), "put back")
			g.Expect(complaints(object(7, 0), object(0, 0))).To(BeEmpty(), "given up before it was in force")

			g.Expect(complaints(object(7, 0), object(8, 0))).To(ContainElement(ContainSubstring("id cannot change once set")))
			g.Expect(complaints(object(7, 7), object(8, 7))).To(ContainElement(ContainSubstring("id cannot change once set")))
			g.Expect(complaints(object(0, 7), object(8, 7))).To(ContainElement(ContainSubstring("spec.id cannot change once set")))
		})
	}
}

func TestOnlyTheUIDOfAReferenceThatIsFixedCanChange(t *testing.T) {
	for kind, crd := range kinds(t) {
		if !fixes(kind) {
			continue
		}
		for _, field := range []string{"userRef", "projectRef", "groupRef", "ownerRef"} {
			if _, ok := root(crd).Properties["spec"].Properties[field]; !ok {
				continue
			}
			t.Run(kind+" "+field, func(t *testing.T) {
				g := NewWithT(t)
				object := func(ref map[string]any) map[string]any {
					of := sample(t, kind)
					switch field {
					case "groupRef":
						delete(of, "projectRef")
						delete(of, "priority") // labels of projects alone have one
					case "projectRef":
						delete(of, "groupRef")
					}
					of[field] = ref
					return map[string]any{"spec": of, "status": map[string]any{"observedGeneration": int64(-1)}}
				}
				complaints := judge(t, crd)
				recorded := object(map[string]any{"id": int64(7), "uid": "old"})
				g.Expect(complaints(recorded, recorded)).To(BeEmpty())
				g.Expect(complaints(recorded, object(map[string]any{"id": int64(7), "uid": "new"}))).To(BeEmpty(), "another uid")
				g.Expect(complaints(recorded, object(map[string]any{"id": int64(7)}))).To(BeEmpty(), "no uid any more")
				for _, ref := range []map[string]any{{"id": int64(8), "uid": "old"}, {"path": "a", "uid": "old"}, {"name": "a", "uid": "old"}, {"name": "a"}} {
					g.Expect(complaints(recorded, object(ref))).To(ContainElement(ContainSubstring("cannot change")), "%v", ref)
				}
				named := object(map[string]any{"name": "a"})
				g.Expect(complaints(named, object(map[string]any{"name": "a", "uid": "new"}))).To(BeEmpty())
				g.Expect(complaints(named, object(map[string]any{"name": "b"}))).To(ContainElement(ContainSubstring("cannot change")))
			})
		}
	}
}
