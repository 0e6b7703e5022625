package manifest_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/manifest"
)

func TestRead_skipsEmptyDocuments(t *testing.T) {
	g := NewWithT(t)
	objects, err := manifest.Read(strings.NewReader("---\nkind: A\nmetadata: {name: a}\n---\n# nothing\n---\nkind: B\nmetadata: {name: b}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveExactElements(HaveField("GetName()", "a"), HaveField("GetName()", "b")))
	_, err = manifest.Read(strings.NewReader("kind: [\n"))
	g.Expect(err).To(HaveOccurred())
}
