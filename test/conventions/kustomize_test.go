package conventions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestKustomizations_listEveryFile(t *testing.T) {
	// These files must be applied separately.
	apart := map[string]string{
		"samples/repositorystorage.yaml": "only the administrator knows the path",
		"samples/storagemove.yaml":       "only the administrator knows the shards",
	}
	kustomizations, err := filepath.Glob(filepath.Join(config, "*", "kustomization.yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(len(kustomizations)).To(BeNumerically(">=", 4))
	for _, file := range kustomizations {
		directory := filepath.Dir(file)
		t.Run(filepath.Base(directory), func(t *testing.T) {
			g := NewWithT(t)
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			var k struct {
				Resources []string `json:"resources"`
			}
			g.Expect(yaml.Unmarshal(text, &k)).To(Succeed())
			entries, err := os.ReadDir(directory)
			g.Expect(err).NotTo(HaveOccurred())
			for _, entry := range entries {
				name := entry.Name()
				_, isApart := apart[filepath.Base(directory)+"/"+name]
				if name == "kustomization.yaml" || isApart || !strings.HasSuffix(name, ".yaml") {
					continue
				}
				g.Expect(k.Resources).To(ContainElement(name), "%s is not listed in %s", name, file)
			}
			for _, resource := range k.Resources {
				g.Expect(filepath.Join(directory, resource)).To(Or(BeARegularFile(), BeADirectory()), "listed in %s", file)
			}
		})
	}
}
