package chart_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
)

// writeSchemas writes a JSON schema for each kind that the cluster of the terminal serves, and returns the pattern by which kubeconform finds
// them. Fields that the cluster does not know are errors.
func writeSchemas() string {
	directory := admin.Space()
	var index struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	Expect(json.Unmarshal([]byte(admin.Kubectl("get", "--raw", "/openapi/v3")), &index)).To(Succeed())
	for path := range index.Paths {
		if !strings.HasPrefix(path, "api") || strings.Count(path, "/") == 0 {
			continue
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		Expect(json.Unmarshal([]byte(admin.Kubectl("get", "--raw", "/openapi/v3/"+path)), &document)).To(Succeed())
		for _, schema := range document.Components.Schemas {
			closeObjects(schema)
		}
		for name, schema := range document.Components.Schemas {
			kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
			for _, entry := range kinds {
				kind := entry.(map[string]any)
				text, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": document.Components})
				Expect(err).NotTo(HaveOccurred())
				version := kind["version"].(string)
				// kubeconform takes the version of the core group for its name.
				group := cmp.Or(kind["group"].(string), version)
				file := strings.ToLower(kind["kind"].(string) + "-" + group + "-" + version + ".json")
				Expect(os.WriteFile(filepath.Join(directory, file), text, 0o600)).To(Succeed())
			}
		}
	}
	return filepath.Join(directory, "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json")
}

// closeObjects forbids the properties that a schema does not list, in it and below.
func closeObjects(schema map[string]any) {
	properties, listed := schema["properties"].(map[string]any)
	_, decided := schema["additionalProperties"]
	if listed && !decided && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	for _, property := range properties {
		closeObjects(property.(map[string]any))
	}
	for _, below := range []string{"items", "additionalProperties"} {
		if below, ok := schema[below].(map[string]any); ok {
			closeObjects(below)
		}
	}
}
