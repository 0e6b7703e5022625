package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// publicKey is an SSH key whose private half nobody has.
const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHJ9MBZRUCSqvFUMgobWvWcwx0S6fAw+cZWnZGWg8VgY robot@example.com"

// kinds are the definitions in config/crd.
func kinds() []apiextensionsv1.CustomResourceDefinition {
	files, err := filepath.Glob("../../config/crd/forgeplane.dev_*.yaml")
	if err != nil || len(files) == 0 {
		panic("no definitions of kinds in config/crd")
	}
	all := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, &all[i])
		}
		if err != nil {
			panic(err)
		}
	}
	return all
}

var _ = Describe("kubectl", Ordered, func() {
	BeforeAll(func() {
		newTeam("porch").apply(`
apiVersion: forgeplane.dev/v1alpha1
kind: DeployKey
metadata: {name: robot, namespace: TEAM}
spec: {projectRef: {name: app}, title: Robot, publicKey: "` + publicKey + `"}
`)
	})

	for _, kind := range kinds() {
		names := kind.Spec.Names

		It("explains "+names.Kind+", down to the last field of its spec", func() {
			Expect(admin.Kubectl("explain", names.Singular)).To(ContainSubstring("DESCRIPTION:"))
			spec := kind.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			for _, path := range paths(names.Singular+".spec", spec) {
				_, description, found := strings.Cut(admin.Kubectl("explain", path), "DESCRIPTION:\n")
				Expect(found).To(BeTrue(), path)
				Expect(description).NotTo(HavePrefix("    <empty>"), path)
			}
		})

		It("knows "+names.Kind+" by its short name, and shows whether it is ready", func() {
			Expect(names.ShortNames).NotTo(BeEmpty())
			table := admin.Kubectl("get", names.ShortNames[0], "--all-namespaces")
			Expect(strings.SplitN(table, "\n", 2)[0]).To(And(ContainSubstring("READY"), ContainSubstring("AGE")))
			Expect(table).To(ContainSubstring("True"))
		})
	}

	It("shows everything at once", func() {
		everything := admin.Kubectl("get", "forge", "--all-namespaces", "--output=name")
		for _, kind := range kinds() {
			Expect(everything).To(ContainSubstring(kind.Spec.Names.Singular + ".forgeplane.dev/"))
		}
	})
})

// paths are those of a schema and of all that is below it.
func paths(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	all := []string{path}
	properties := schema.Properties
	if schema.Items != nil {
		properties = schema.Items.Schema.Properties
	}
	for name, property := range properties {
		all = append(all, paths(path+"."+name, property)...)
	}
	return all
}
