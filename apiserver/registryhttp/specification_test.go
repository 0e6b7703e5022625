package registryhttp_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/forgeplane/forgeplane/apiserver/v4/familytest"
	"github.com/forgeplane/forgeplane/test/tools"
)

// TestSpecification_isMet runs the conformance program of the OCI distribution specification 1.1, with its optional parts.
func TestSpecification_isMet(t *testing.T) {
	g, w := NewWithT(t), newWorld(t)
	program := &tool{t, tools.Images(t, "conformance"), t.TempDir()}
	t.Setenv("OCI_REGISTRY", w.host)
	t.Setenv("OCI_TLS", "disabled")
	t.Setenv("OCI_VERSION", "1.1")
	t.Setenv("OCI_REPO1", "acme/app/one")
	t.Setenv("OCI_REPO2", "acme/app/two")
	t.Setenv("OCI_USERNAME", "mary")
	t.Setenv("OCI_PASSWORD", familytest.Value("mary"))
	t.Setenv("OCI_API_BLOBS_DIGEST_HEADER", "true")
	t.Setenv("OCI_API_BLOBS_UPLOAD_CANCEL", "true")
	t.Setenv("OCI_API_MANIFESTS_DIGEST_HEADER", "true")
	said := program.must()

	text, err := os.ReadFile(filepath.Join(program.scratch, "results", "results.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var results struct {
		APIs map[string]string `json:"apis"`
		Data map[string]string `json:"data"`
	}
	g.Expect(yaml.Unmarshal(text, &results)).To(Succeed())
	g.Expect(results.APIs).To(HaveLen(28))
	g.Expect(results.Data).To(HaveLen(24))
	for _, all := range []map[string]string{results.APIs, results.Data} {
		maps.DeleteFunc(all, func(_, status string) bool { return status == "Pass" })
	}
	// The specification lets a registry ask for the body in a second request, and for the repository of a layer.
	g.Expect(results.APIs).To(Equal(map[string]string{"Blob post only": "Skip", "Blob anonymous mount": "Skip", "Manifest put with tag params": "Disabled"}), said)
	// They are not in version 1.1.
	g.Expect(results.Data).To(Equal(map[string]string{"Sparse Manifests": "Disabled", "Tag Param": "Disabled", "Tag Param sha512": "Disabled"}), said)
}
