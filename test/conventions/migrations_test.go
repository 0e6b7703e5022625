package conventions_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// No version has been released, so no database needs a second migration of the same tables.
func TestMigrations_areOneForEachAggregate(t *testing.T) {
	g := NewWithT(t)
	engines := map[string]string{} // the name of the migration, by its aggregate
	for _, engine := range []string{"sqlite3", "postgres"} {
		for _, pattern := range []string{"../../internal/*/migrations", "../../internal/*/*/migrations"} {
			aggregates, err := filepath.Glob(pattern)
			g.Expect(err).NotTo(HaveOccurred())
			for _, aggregate := range aggregates {
				files, err := filepath.Glob(filepath.Join(aggregate, engine, "*.sql"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(files).To(HaveLen(1), "%s: change the migration that is there", filepath.Join(aggregate, engine))
				name := filepath.Base(files[0])
				if engines[aggregate] != "" {
					g.Expect(name).To(Equal(engines[aggregate]), aggregate)
				}
				engines[aggregate] = name
			}
		}
	}
	g.Expect(len(engines)).To(BeNumerically(">", 10))
}
