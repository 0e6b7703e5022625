package conventions_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
)

func TestTarget_isTestedWithDescribeTarget(t *testing.T) {
	g, found := NewWithT(t), 0
	for _, kind := range v1alpha1.Kinds() {
		name := reflect.TypeOf(kind).Elem().Name()
		if _, targeted := kind.(v1alpha1.Targeted); !targeted || name == "StorageMove" { // which ends, and then no longer follows its project
			continue
		}
		found++
		suite, err := filepath.Glob(filepath.Join("../../controllers", strings.ToLower(name), "*_test.go"))
		g.Expect(err).NotTo(HaveOccurred())
		var text strings.Builder
		for _, file := range suite {
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			text.Write(content)
		}
		g.Expect(text.String()).To(ContainSubstring("forge.DescribeTarget("), name)
	}
	g.Expect(found).To(BeNumerically(">", 9))
}
