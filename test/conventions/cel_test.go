package conventions_test

import (
	"maps"
	"os"
	"path/filepath"
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
)

// judge returns the errors that the CEL rules of a kind find in a change of an object.
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

func TestDefinitions_areValidForTheAPIServer(t *testing.T) {
	for kind, crd := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			// The API server sets defaults before it validates.
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

// sample returns the spec in the sample of a kind.
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

func TestID_cannotChangeOnceSet(t *testing.T) {
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

			once := ConsistOf(And(HavePrefix("spec.id: "), ContainSubstring("id cannot change once set")))
			g.Expect(complaints(object(7, 0), object(8, 0))).To(once)
			g.Expect(complaints(object(7, 7), object(8, 7))).To(once)
			g.Expect(complaints(object(0, 7), object(8, 7))).To(once)
		})
	}
}

func TestFixedReference_canOnlyChangeItsUID(t *testing.T) {
	for kind, crd := range kinds(t) {
		for _, field := range []string{"userRef", "ownerRef"} {
			if _, ok := root(crd).Properties["spec"].Properties[field]; !ok {
				continue
			}
			t.Run(kind+" "+field, func(t *testing.T) {
				g := NewWithT(t)
				object := func(ref map[string]any) map[string]any {
					of := sample(t, kind)
					of[field] = ref
					return map[string]any{"spec": of, "status": map[string]any{"observedGeneration": int64(-1)}}
				}
				complaints := judge(t, crd)
				recorded := object(map[string]any{"id": int64(7), "uid": "old"})
				g.Expect(complaints(recorded, recorded)).To(BeEmpty())
				g.Expect(complaints(recorded, object(map[string]any{"id": int64(7), "uid": "new"}))).To(BeEmpty(), "another uid")
				g.Expect(complaints(recorded, object(map[string]any{"id": int64(7)}))).To(BeEmpty(), "no uid any more")
				for _, ref := range []map[string]any{{"id": int64(8), "uid": "old"}, {"path": "a", "uid": "old"}, {"name": "a", "uid": "old"}, {"name": "a"}} {
					g.Expect(complaints(recorded, object(ref))).To(ContainElement(MatchRegexp("cannot change.*: make a new ")), "%v", ref)
				}
				named := object(map[string]any{"name": "a"})
				g.Expect(complaints(named, object(map[string]any{"name": "a", "uid": "new"}))).To(BeEmpty())
				g.Expect(complaints(named, object(map[string]any{"name": "b"}))).To(ContainElement(ContainSubstring("cannot change")))
			})
		}
	}
}

func TestMirrorURL_withoutASchemeHasOneError(t *testing.T) {
	g := NewWithT(t)
	mirror := map[string]any{"spec": sample(t, "RemoteMirror"), "status": map[string]any{"observedGeneration": int64(-1)}}
	mirror["spec"].(map[string]any)["url"] = "git@git.example.com:acme/website.git"
	g.Expect(judge(t, kinds(t)["RemoteMirror"])(nil, mirror)).To(ConsistOf(ContainSubstring("as in ssh://git.example.com/acme/website.git")))
}

func TestTargetReference_canChangeItsForm(t *testing.T) {
	for kind, crd := range kinds(t) {
		spec := root(crd).Properties["spec"].Properties
		if _, ok := spec["projectRef"]; !ok {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			object := func(field string, ref map[string]any) map[string]any {
				of := sample(t, kind)
				delete(of, "projectRef")
				delete(of, "groupRef")
				delete(of, "priority") // only labels of projects have a priority
				of[field] = ref
				return map[string]any{"spec": of, "status": map[string]any{"observedGeneration": int64(-1)}}
			}
			complaints := judge(t, crd)
			named := object("projectRef", map[string]any{"name": "a"})
			for _, ref := range []map[string]any{{"path": "acme/a"}, {"id": int64(7)}, {"name": "b"}} {
				g.Expect(complaints(named, object("projectRef", ref))).To(BeEmpty(), "%v", ref)
			}
			if _, ok := spec["groupRef"]; ok {
				g.Expect(complaints(named, object("groupRef", map[string]any{"name": "a"}))).To(ContainElement(ContainSubstring("cannot replace each other")))
			}
		})
	}
}
