// Package vulncheck tests hack/vulncheck.sh with its own module and database.
package vulncheck

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// program calls a function of the standard library that the database can contain.
const program = `package main

import (
	"fmt"
	"strings"
)

func main() { fmt.Println(strings.ToUpper("hello")) }
`

// entry is a vulnerability of one function of package strings, in the format of https://ossf.github.io/osv-schema/.
const entry = `{
  "schema_version": "1.3.1", "id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z", "published": "2000-01-01T00:00:00Z",
  "summary": "Made for a test", "details": "Made for a test.",
  "affected": [{
    "package": {"name": "stdlib", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
    "ecosystem_specific": {"imports": [{"path": "strings", "symbols": [%q]}]}
  }],
  "database_specific": {"url": "https://example.com/GO-2000-0001"}
}`

func TestVulncheck_findsCalledFunctionsInADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	g := NewWithT(t)
	module := t.TempDir()
	write(t, module, "go.mod", "module example.com/hello\n\ngo 1.24\n")
	write(t, module, "main.go", program)

	text, err := vulncheck(t, database(t, "ToUpper"), module)
	g.Expect(err).To(HaveOccurred(), text)
	g.Expect(text).To(And(ContainSubstring("GO-2000-0001"), ContainSubstring("FAILED: update the modules that are named above")))

	text, err = vulncheck(t, database(t, "ToLower"), module)
	g.Expect(err).NotTo(HaveOccurred(), text)
	g.Expect(text).To(ContainSubstring("no known vulnerabilities"))

	text, err = vulncheck(t, filepath.Join(t.TempDir(), "missing"), module)
	g.Expect(err).To(HaveOccurred(), "a database that is named must be there: %s", text)
	g.Expect(text).NotTo(ContainSubstring("SKIPPED"))
}

func TestVulncheck_isSkippedWithoutADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	module := t.TempDir()
	write(t, module, "go.mod", "module example.com/hello\n\ngo 1.24\n")
	write(t, module, "main.go", program)
	// Nothing listens at the discard port, so the script cannot reach a network.
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	text, err := vulncheck(t, "", module)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), text)
	NewWithT(t).Expect(text).To(ContainSubstring("SKIPPED: the vulnerability database cannot be reached; set VULNDB"))
}

// vulncheck runs the script on a module, with the database in a directory, or with the public database if the directory is empty.
func vulncheck(t *testing.T, database, module string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "hack/vulncheck.sh", module)
	c.Dir = "../.."
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "VULNDB=")
	if database != "" {
		c.Env = append(c.Env, "VULNDB="+(&url.URL{Scheme: "file", Path: database}).String())
	}
	text, err := c.CombinedOutput()
	return string(text), err
}

// database creates a database with a vulnerability of a function of package strings.
func database(t *testing.T, function string) string {
	t.Helper()
	dir := t.TempDir()
	const modified = `"modified": "2000-01-01T00:00:00Z"`
	write(t, dir, "index/db.json", `{`+modified+`}`)
	write(t, dir, "index/modules.json", `[{"path": "stdlib", "vulns": [{"id": "GO-2000-0001", `+modified+`}]}]`)
	write(t, dir, "index/vulns.json", `[{"id": "GO-2000-0001", `+modified+`, "aliases": []}]`)
	write(t, dir, "ID/GO-2000-0001.json", fmt.Sprintf(entry, function))
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
