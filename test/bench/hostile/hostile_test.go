package hostile_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/hostile"
)

func TestMain(m *testing.M) {
	if status, called := hostile.Main(os.Args); called {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// Small versions of the hostile repositories are served without reaching a limit.
func TestMeasure_servesSmallRepositories(t *testing.T) {
	g := NewWithT(t)
	client, err := gitclient.New(t.TempDir(), "nobody", "none")
	g.Expect(err).NotTo(HaveOccurred())
	for _, r := range (hostile.Scale{Zeros: 33 << 20, Entries: 2_000, Depth: 4, Deltas: 50, Refs: 300, Attributes: 500}).Repositories() {
		dir := t.TempDir()
		source, storage := filepath.Join(dir, "source"), filepath.Join(dir, "storage")
		g.Expect(os.Mkdir(storage, 0o700)).To(Succeed())
		g.Expect(r.Make(t.Context(), client, source)).To(Succeed())
		for _, operation := range hostile.Operations() {
			f, err := hostile.Measure(t.Context(), operation, source, storage)
			g.Expect(err).NotTo(HaveOccurred(), "%s of %s", operation, r.Name)
			g.Expect(f.Failed).To(BeEmpty(), "%s of %s", operation, r.Name)
			g.Expect(f.Peak).To(And(BeNumerically(">", 1<<20), BeNumerically("<", 400<<20)), "%s of %s", operation, r.Name)
			g.Expect(f.Said).To(BeEmpty(), "%s of %s", operation, r.Name)
		}
	}
}
