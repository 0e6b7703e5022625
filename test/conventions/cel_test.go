package conventions_test

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
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

func TestAnIDCannotChangeOnceSet(t *testing.T) {
	// What a rule of each kind asks for besides.
	specs := map[string]map[string]any{
		"AccessToken":     {"userRef": map[string]any{"name": "a"}, "secretRef": map[string]any{"name": "a"}},
		"Badge":           {"projectRef": map[string]any{"name": "a"}, "linkURL": "https://a", "imageURL": "https://a"},
		"DeployKey":       {"projectRef": map[string]any{"name": "a"}, "publicKey": "ssh-ed25519 AAAA"},
		"Group":           {"path": "a"},
		"Label":           {"title": "a", "color": "red", "projectRef": map[string]any{"name": "a"}},
		"Project":         {"path": "a", "groupRef": map[string]any{"name": "a"}},
		"ProtectedBranch": {"branch": "a", "projectRef": map[string]any{"name": "a"}},
		"TriggerToken":    {"projectRef": map[string]any{"name": "a"}, "secretRef": map[string]any{"name": "a"}},
		"RemoteMirror":    {"projectRef": map[string]any{"name": "a"}, "url": "https://a"},
		"User":            {"username": "a"},
	}
	for kind, crd := range kinds(t) {
		if _, ok := root(crd).Properties["spec"].Properties["id"]; !ok {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(specs).To(HaveKey(kind), "say here what else a %s needs", kind)
			object := func(declared, inForce int64) map[string]any {
				o := map[string]any{"spec": maps.Clone(specs[kind]), "status": map[string]any{"observedGeneration": int64(-1)}}
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
	specs := map[string]map[string]any{
		"AccessToken":     {"scopes": []any{"api"}, "secretRef": map[string]any{"name": "a"}},
		"Badge":           {"linkURL": "https://a", "imageURL": "https://a"},
		"DeployKey":       {"publicKey": "ssh-ed25519 AAAA"},
		"JobTokenScope":   {},
		"Label":           {"title": "a", "color": "red"},
		"Membership":      {"role": "Owner"},
		"ProtectedBranch": {"branch": "a"},
		"RemoteMirror":    {"url": "https://a"},
		"TriggerToken":    {},
	}
	for kind, crd := range kinds(t) {
		spec, ok := specs[kind]
		if !ok {
			continue
		}
		for _, field := range []string{"userRef", "projectRef", "groupRef", "ownerRef"} {
			if _, ok := root(crd).Properties["spec"].Properties[field]; !ok {
				continue
			}
			t.Run(kind+" "+field, func(t *testing.T) {
				g := NewWithT(t)
				object := func(ref map[string]any) map[string]any {
					of := maps.Clone(spec)
					for _, f := range root(crd).Properties["spec"].Required {
						if f == "userRef" || f == "projectRef" {
							of[f] = map[string]any{"name": "other"}
						}
					}
					if kind == "Membership" && field == "userRef" {
						of["projectRef"] = map[string]any{"name": "other"}
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
