// Package toy_test tests the example of the package toy. It also adds a kind and a family of endpoints to a copy of this tree, in the way that
// CONTRIBUTING.md describes, and tests the result.
package toy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/test/soak"
)

// most is the maximum number of files that must be written by hand for a kind, and for a family.
const most = 8

// line is inserted after the line of a file that begins in a given way. Only the beginning counts: gofmt aligns the rest, and texts change.
type line struct{ file, behind, text string }

// addition is an addition that CONTRIBUTING.md describes: new files, which are in a directory of testdata, and lines in existing files.
type addition struct {
	directory string
	lines     []line
}

var newKind = addition{"kind", []line{
	{"api/v1alpha1/kinds.go", "\t\t&TriggerToken{}", "\t\t&Toy{},\n"},
	{
		"controllers/controllers.go", "\t\"github.com/forgeplane/forgeplane/controllers/retainedrepository\"",
		"\t\"github.com/forgeplane/forgeplane/controllers/toy\"\n",
	},
	{"controllers/controllers.go", "\t\tof(c, label.New(base))", "\t\tof(c, toy.New(base)),\n"},
	{
		"README.md", "| [Label](docs/label.md) |",
		"| [Toy](docs/toy.md) | namespaced | something that a project or group has |\n",
	},
}}

var newFamily = addition{"family", []line{
	{
		"apiserver/rest.go", "\t\"github.com/forgeplane/forgeplane/apiserver/v4/tags\"",
		"\t\"github.com/forgeplane/forgeplane/apiserver/v4/toys\"\n",
	},
	{"apiserver/rest.go", "\t\tbadges.New(", "\t\ttoys.New(k).Table().Named(\"Toys\"),\n"},
	{
		"apiserver/auth/abilities.go", "\tWriteBadges ",
		"\tReadToys endpoint.Ability = \"read_toys\"\n\tWriteToys endpoint.Ability = \"write_toys\"\n",
	},
	{
		"apiserver/auth/abilities.go", "\tWriteBadges:",
		"\tReadToys: {about: aboutProject},\n\tWriteToys: {about: aboutProject, role: role.Maintainer},\n",
	},
	{"apiserver/requests_test.go", "\t\"badges/{badge_id}\"", "\t\"toys/{toy_id}\": \"95\",\n"},
	{
		"apiserver/world_test.go", "\t\ttriggerToken(",
		"\t\t&v1alpha1.Toy{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: \"ball\"}, " +
			"Spec: v1alpha1.ToySpec{ID: 95, ProjectRef: &v1alpha1.Reference{Name: \"app\"}}},\n",
	},
	{"docs/rest.md", "| badges", "| toys | [Toy](toy.md) |\n"},
}}

func TestAddition_takesFewFiles(t *testing.T) {
	root := checkout(t)
	tree := t.TempDir()
	for _, file := range strings.Split(strings.TrimSuffix(run(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		if !strings.HasPrefix(file, "test/toy/") {
			copyFile(t, filepath.Join(root, file), filepath.Join(tree, file))
		}
	}
	add(t, tree, newKind)
	add(t, tree, newFamily)
	run(t, tree, "gofmt", "-l", "api", "apiserver", "controllers") // fails if a file cannot be parsed
	if !soak.Running() {
		return
	}
	run(t, tree, "make", "generate", "manifests")
	run(t, tree, "go", "test", "-vet=off", "./test/conventions", "-update")
	run(t, tree, "go", "test", "-vet=off", "./apiserver", "-run", "TestEndpoint_answers", "-update")
	run(t, tree, "go", "vet", "./test/conformance")
	run(t, tree, "go", "test", "-vet=off", "./test/conventions", "./controllers/toy", "./apiserver/auth", "./apiserver/v4/toys")
	run(t, tree, "go", "test", "-vet=off", "./apiserver", "-run", "TestEndpoint_answers")
	if table := read(t, filepath.Join(tree, "apiserver/testdata/authorization.txt")); !strings.Contains(table, "/projects/{id}/toys/{toy_id}") {
		t.Error("the table of authorization has no row for the new endpoints")
	}
}

// add creates and changes the files of an addition.
func add(t *testing.T, tree string, a addition) {
	t.Helper()
	touched := map[string]bool{}
	files := filepath.Join("testdata", a.directory)
	err := filepath.WalkDir(files, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := filepath.Rel(files, path)
		touched[file] = true
		copyFile(t, path, filepath.Join(tree, file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range a.lines {
		touched[l.file] = true
		insert(t, filepath.Join(tree, l.file), l)
	}
	t.Logf("a %s takes %d files", a.directory, len(touched))
	if len(touched) > most {
		t.Errorf("%d files of a %s are written by hand, at most %d are expected: %v", len(touched), a.directory, most, touched)
	}
}

// checkout returns the directory of this tree.
func checkout(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(run(t, ".", "git", "rev-parse", "--show-toplevel"))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return // the file was removed meanwhile
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, info.Mode().Perm())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func insert(t *testing.T, path string, l line) {
	t.Helper()
	text := read(t, path)
	_, rest, found := strings.Cut(text, "\n"+l.behind)
	if !found {
		t.Fatalf("%s has no line that begins with %q", l.file, l.behind)
	}
	_, after, _ := strings.Cut(rest, "\n")
	if err := os.WriteFile(path, []byte(strings.TrimSuffix(text, after)+l.text+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a command and returns its output.
func run(t *testing.T, directory, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = directory
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}
