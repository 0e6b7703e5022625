package conventions_test

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kindRule is a convention that every kind must follow.
type kindRule struct {
	name string
	// check returns what is wrong with a kind, or an empty string.
	check func(crd *apiextensionsv1.CustomResourceDefinition) string
	// breaks are changes of a correct kind, each of which breaks the rule.
	breaks []func(crd *apiextensionsv1.CustomResourceDefinition)
}

type crdChange = func(crd *apiextensionsv1.CustomResourceDefinition)

var kindRules = []kindRule{{
	name:  "one version is served and stored",
	check: oneVersion,
	breaks: []crdChange{
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Group = "example.com" },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false },
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions = append(crd.Spec.Versions, crd.Spec.Versions[0])
		},
	},
}, {
	name:  "the status is a subresource",
	check: statusSubresource,
	breaks: []crdChange{
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources.Status = nil },
	},
}, {
	name:  "spec is required, and a new status is not observed yet",
	check: unobserved,
	breaks: []crdChange{
		func(crd *apiextensionsv1.CustomResourceDefinition) { root(crd).Required = nil },
		changeOf("status", func(s *apiextensionsv1.JSONSchemaProps) { s.Default = nil }),
		changeOf("status", func(s *apiextensionsv1.JSONSchemaProps) {
			s.Default = &apiextensionsv1.JSON{Raw: []byte(`{"observedGeneration":0}`)}
		}),
	},
}, {
	name:  "the conditions are a map list by type",
	check: conditionList,
	breaks: []crdChange{
		changeOf("status", func(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties, "conditions") }),
		changeOf("status", func(s *apiextensionsv1.JSONSchemaProps) {
			conditions := s.Properties["conditions"]
			conditions.XListMapKeys = []string{"reason"}
			s.Properties["conditions"] = conditions
		}),
	},
}, {
	name:  "kubectl shows what identifies an object, when it expires, and Ready, Reason, Age and with -o wide Message",
	check: columns,
	breaks: []crdChange{
		dropColumn("Ready"), dropColumn("Reason"), dropColumn("Age"), dropColumn("Message"),
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			all := crd.Spec.Versions[0].AdditionalPrinterColumns
			crd.Spec.Versions[0].AdditionalPrinterColumns = all[len(all)-4:]
		},
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			all := crd.Spec.Versions[0].AdditionalPrinterColumns
			all[len(all)-3].Priority = 1
		},
		columnOf(".spec.nowhere"), columnOf(".spec.projectRef.name"), columnOf(".status.conditions[*].message"),
		columnOf(".spec.id"),
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].AdditionalPrinterColumns[0].Type = "date"
		},
		changeOf("spec", func(s *apiextensionsv1.JSONSchemaProps) {
			s.Properties["expiresAt"] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
		}),
	},
}, {
	name:  "a kind has a short name, and the category forge if tenants can read it, otherwise forge-admin",
	check: names,
	breaks: []crdChange{
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = nil },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.ShortNames = []string{"po"} },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Categories = nil },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Categories = []string{"all"} },
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Names.Kind = "StorageMove" },
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Scope = apiextensionsv1.ClusterScoped
		},
	},
}, {
	name:  "objects can be selected by id and by project",
	check: selectable,
	breaks: []crdChange{
		func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].SelectableFields = nil },
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].SelectableFields = crd.Spec.Versions[0].SelectableFields[:1]
		},
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].SelectableFields[0].JSONPath = ".spec.nowhere"
		},
	},
}, {
	name:  "an id is an integer that JSON can represent",
	check: boundedID,
	breaks: []crdChange{
		changeOf("spec", func(s *apiextensionsv1.JSONSchemaProps) {
			changeID(s, func(id *apiextensionsv1.JSONSchemaProps) { id.Maximum = nil })
		}),
		changeOf("spec", func(s *apiextensionsv1.JSONSchemaProps) {
			changeID(s, func(id *apiextensionsv1.JSONSchemaProps) { id.Minimum = nil })
		}),
		changeOf("spec", func(s *apiextensionsv1.JSONSchemaProps) { s.Required = append(s.Required, "id") }),
		changeOf("status", func(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties, "id") }),
	},
}}

func root(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func changeOf(part string, change func(s *apiextensionsv1.JSONSchemaProps)) crdChange {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		s := root(crd).Properties[part]
		change(&s)
		root(crd).Properties[part] = s
	}
}

func changeID(spec *apiextensionsv1.JSONSchemaProps, change func(id *apiextensionsv1.JSONSchemaProps)) {
	id := spec.Properties["id"]
	change(&id)
	spec.Properties["id"] = id
}

func dropColumn(name string) crdChange {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		v := &crd.Spec.Versions[0]
		v.AdditionalPrinterColumns = slices.DeleteFunc(v.AdditionalPrinterColumns,
			func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Name == name })
	}
}

func columnOf(path string) crdChange {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].AdditionalPrinterColumns[0].JSONPath = path
	}
}

func oneVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Group != "forgeplane.dev" {
		return "is of the group " + crd.Spec.Group
	}
	if v := crd.Spec.Versions; len(v) != 1 || !v[0].Served || !v[0].Storage || v[0].Schema == nil {
		return "has not one version with a schema, served and stored"
	}
	return ""
}

func statusSubresource(crd *apiextensionsv1.CustomResourceDefinition) string {
	if s := crd.Spec.Versions[0].Subresources; s == nil || s.Status == nil {
		return "has no status subresource"
	}
	return ""
}

func unobserved(crd *apiextensionsv1.CustomResourceDefinition) string {
	if !slices.Contains(root(crd).Required, "spec") {
		return "does not require a spec"
	}
	status := root(crd).Properties["status"]
	if status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		return "has a status that does not default to observedGeneration -1"
	}
	return ""
}

func conditionList(crd *apiextensionsv1.CustomResourceDefinition) string {
	c, ok := root(crd).Properties["status"].Properties["conditions"]
	if !ok {
		return "has no conditions"
	}
	if c.XListType == nil || *c.XListType != "map" || !slices.Equal(c.XListMapKeys, []string{"type"}) {
		return "has conditions that are no map list by type"
	}
	return ""
}

func columns(crd *apiextensionsv1.CustomResourceDefinition) string {
	all := crd.Spec.Versions[0].AdditionalPrinterColumns
	last := []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
		{Name: "Reason", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].reason`},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		{Name: "Message", Type: "string", Priority: 1, JSONPath: `.status.conditions[?(@.type=="Ready")].message`},
	}
	if len(all) < len(last) || !slices.Equal(all[len(all)-len(last):], last) {
		return "has columns that do not end in Ready, Reason, Age and Message"
	}
	identifying := all[:len(all)-len(last)]
	if !slices.ContainsFunc(identifying, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Priority == 0 }) {
		return "has no column that tells its objects apart"
	}
	expires := func(c apiextensionsv1.CustomResourceColumnDefinition) bool {
		return c.JSONPath == ".spec.expiresAt" && c.Priority == 0
	}
	if lookup(root(crd), ".spec.expiresAt") != nil && !slices.ContainsFunc(identifying, expires) {
		return "has no column that says when its objects expire"
	}
	for _, c := range identifying {
		if wrong := truthful(c, root(crd)); wrong != "" {
			return fmt.Sprintf("has a column %s of %s, %s", c.Name, c.JSONPath, wrong)
		}
	}
	return ""
}

// truthful returns what kubectl would show wrongly in a column, or an empty string.
func truthful(c apiextensionsv1.CustomResourceColumnDefinition, s *apiextensionsv1.JSONSchemaProps) string {
	of := lookup(s, c.JSONPath)
	field, declared := strings.CutPrefix(c.JSONPath, ".spec.")
	switch {
	case strings.Contains(c.JSONPath, "[*]"):
		return "of which kubectl shows only the first element"
	case of == nil:
		return "which is not in the schema"
	case strings.Contains(c.JSONPath, "Ref."):
		return "which is empty for references by another field"
	case declared && lookup(s, ".status."+field) != nil:
		return "while .status." + field + " has the value that is in force"
	case c.Type == "date" && (of.Format != "date-time" || strings.HasPrefix(c.JSONPath, ".spec.")):
		return "which can be something other than a time in the past"
	}
	return ""
}

// lookup returns the schema at a JSON path of plain names. A list stands for its items.
func lookup(s *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		if s.Items != nil {
			s = s.Items.Schema
		}
		below, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &below
	}
	return s
}

// taken are short names that Kubernetes itself uses.
var taken = []string{"cm", "crd", "cs", "csr", "deploy", "ds", "ep", "ev", "ing", "limits", "no", "ns", "pc", "pdb", "po", "pv", "pvc", "quota", "rc", "rs", "sa", "sc", "sts", "svc"}

func names(crd *apiextensionsv1.CustomResourceDefinition) string {
	n := crd.Spec.Names
	if len(n.ShortNames) == 0 {
		return "has no short name"
	}
	for _, s := range n.ShortNames {
		if slices.Contains(taken, s) {
			return fmt.Sprintf("has the short name %s, which is one of Kubernetes", s)
		}
	}
	// "kubectl get forge" must succeed with the rights of a tenant, and show nothing outside of the namespace.
	want := []string{"forge-admin"}
	if forTenants(crd) {
		want = []string{"forge"}
	}
	if !slices.Equal(n.Categories, want) {
		return fmt.Sprintf("has the categories %v instead of %v", n.Categories, want)
	}
	return ""
}

// forTenants reports whether tenants can read and write the objects of a kind in their namespaces. Which volume a repository is on is not for
// tenants to see or decide.
func forTenants(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Scope == apiextensionsv1.NamespaceScoped && crd.Spec.Names.Kind != "StorageMove"
}

func selectable(crd *apiextensionsv1.CustomResourceDefinition) string {
	var fields []string
	for _, f := range crd.Spec.Versions[0].SelectableFields {
		if lookup(root(crd), f.JSONPath) == nil {
			return fmt.Sprintf("has the selectable field %s, which is not in the schema", f.JSONPath)
		}
		fields = append(fields, f.JSONPath)
	}
	for _, needed := range []string{".spec.id", ".spec.projectRef.name"} {
		if lookup(root(crd), needed) != nil && !slices.Contains(fields, needed) {
			return "cannot be selected by " + needed
		}
	}
	return ""
}

// maxID is 2^53-1. Many clients lose digits of larger JSON numbers.
const maxID = 1<<53 - 1

func boundedID(crd *apiextensionsv1.CustomResourceDefinition) string {
	spec := root(crd).Properties["spec"]
	id, ok := spec.Properties["id"]
	if !ok {
		return ""
	}
	if id.Minimum == nil || *id.Minimum != 1 || id.Maximum == nil || *id.Maximum != maxID {
		return "has a spec.id that is not bounded by 1 and 2^53-1"
	}
	if slices.Contains(spec.Required, "id") {
		return "requires spec.id, which is to be allocated"
	}
	if _, ok := root(crd).Properties["status"].Properties["id"]; !ok {
		return "has no status.id"
	}
	return ""
}
