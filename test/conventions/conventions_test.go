// Package conventions_test checks the generated and the handwritten files in config against the conventions of the API, and tests these checks.
package conventions_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

const config = "../../config"

// kinds reads the generated definitions of all kinds, by kind.
func kinds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(config, "crd", "forgeplane.dev_*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.UnmarshalStrict(text, crd)).To(Succeed(), file)
		all[crd.Spec.Names.Kind] = crd
	}
	return all
}

func TestFields_followTheConventions(t *testing.T) {
	for kind, crd := range kinds(t) {
		for _, rule := range schemaRules {
			declared(root(crd), func(f field) {
				if wrong := rule.check(f); wrong != "" {
					t.Errorf("%s: %s: %s %s", rule.name, kind, f.path, wrong)
				}
			})
		}
	}
}

func TestKinds_followTheConventions(t *testing.T) {
	shortNames := map[string]string{}
	for kind, crd := range kinds(t) {
		for _, rule := range kindRules {
			if wrong := rule.check(crd); wrong != "" {
				t.Errorf("%s: %s %s", rule.name, kind, wrong)
			}
		}
		for _, s := range crd.Spec.Names.ShortNames {
			if other, ok := shortNames[s]; ok {
				t.Errorf("%s and %s have the same short name %s", kind, other, s)
			}
			shortNames[s] = kind
		}
	}
}

func TestSchemaRules_findOnlyViolations(t *testing.T) {
	offences := func(t *testing.T, rule schemaRule, text string) int {
		t.Helper()
		s := apiextensionsv1.JSONSchemaProps{Type: "object"}
		NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), &s.Properties)).To(Succeed(), text)
		n := 0
		declared(&s, func(f field) {
			if rule.check(f) != "" {
				n++
			}
		})
		return n
	}
	for _, rule := range schemaRules {
		t.Run(rule.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rule.breaks).NotTo(BeEmpty())
			g.Expect(rule.keeps).NotTo(BeEmpty())
			for _, text := range rule.breaks {
				g.Expect(offences(t, rule, text)).To(Equal(1), "to be found: %s", text)
			}
			for _, text := range rule.keeps {
				g.Expect(offences(t, rule, text)).To(BeZero(), "to be let through: %s", text)
			}
		})
	}
}

func TestKindRules_findOnlyViolations(t *testing.T) {
	right := kinds(t)["DeployKey"] // it has a spec.id and a projectRef
	for _, rule := range kindRules {
		t.Run(rule.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rule.breaks).NotTo(BeEmpty())
			g.Expect(rule.check(right)).To(BeEmpty())
			for i, change := range rule.breaks {
				wrong := right.DeepCopy()
				change(wrong)
				g.Expect(rule.check(wrong)).NotTo(BeEmpty(), "change %d is to be found", i)
			}
		})
	}
}

func TestStatus_beginsWithTheConditions(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	common := reflect.TypeFor[v1alpha1.CommonStatus]()
	g.Expect(common.Field(0).Name).To(Equal("Conditions"))

	generated := kinds(t)
	g.Expect(v1alpha1.Kinds()).To(HaveLen(len(generated)))
	for kind := range generated {
		g.Expect(scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind))).To(BeTrue(), "%s is not in AddToScheme", kind)
	}
	for kind, typ := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if !reflect.PointerTo(typ).Implements(reflect.TypeFor[client.Object]()) {
			continue // a list, or options of metav1
		}
		g.Expect(generated).To(HaveKey(kind))
		status, ok := typ.FieldByName("Status")
		g.Expect(ok).To(BeTrue(), kind)
		first := status.Type.Field(0)
		g.Expect(first.Type).To(Equal(common), "the status of %s does not begin with CommonStatus", kind)
		g.Expect(first.Tag.Get("json")).To(Equal(",inline"))
	}
}
