package conventions_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// knownMigrations has the checksum and the path of each migration.
const knownMigrations = "testdata/migrations.txt"

// Installations keep their databases when they get a new commit, and go back to an earlier one.
func TestMigrations_neverChange(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(knownMigrations)
	g.Expect(err).NotTo(HaveOccurred())
	known := map[string]string{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		sum, path, _ := strings.Cut(line, "  ")
		known[path] = sum
	}
	engines := map[string][]string{} // the names of the migrations of each aggregate and engine
	for _, pattern := range []string{"../../internal/*/migrations/*/*.sql", "../../internal/*/*/migrations/*/*.sql"} {
		files, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			path := strings.TrimPrefix(file, "../../")
			sum := fmt.Sprintf("%x", sha256.Sum256(content))
			if *update && known[path] == "" {
				known[path] = sum
				lines = append(lines, sum+"  "+path)
			}
			g.Expect(known).To(HaveKey(path), "go test ./test/conventions -update adds it to %s", knownMigrations)
			g.Expect(sum).To(Equal(known[path]), "%s must not change, because databases have it: add another migration", path)
			delete(known, path)
			engines[filepath.Dir(path)] = append(engines[filepath.Dir(path)], filepath.Base(path))
		}
	}
	g.Expect(known).To(BeEmpty(), "migrations must not disappear")
	g.Expect(len(engines)).To(BeNumerically(">", 20))
	for directory, names := range engines {
		other := filepath.Join(filepath.Dir(directory), map[string]string{"sqlite3": "postgres", "postgres": "sqlite3"}[filepath.Base(directory)])
		g.Expect(names).To(Equal(engines[other]), directory)
	}
	if *update {
		slices.SortFunc(lines, func(a, b string) int { return strings.Compare(filepath.Base(a)+a, filepath.Base(b)+b) })
		g.Expect(os.WriteFile(knownMigrations, []byte(strings.Join(lines, "\n")+"\n"), 0o644)).To(Succeed()) //nolint:gosec // it is a file of the checkout
	}
}
