// Package toy_test tests an example of a family in the activity database. It also adds this family, and a kind with a family of endpoints, to
// copies of this tree, in the way that CONTRIBUTING.md describes, and tests the results.
package toy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/test/controlplane/pool"
	"github.com/forgeplane/forgeplane/test/soak"
)

// most is the maximum number of files that must be written by hand for an addition.
const most = 8

// line is inserted after the line of a file that begins in a given way. Only the beginning counts: gofmt aligns the rest, and texts change.
type line struct{ file, behind, text string }

// addition is an addition that CONTRIBUTING.md describes: new files, which are in some directories of a root, and lines in existing files.
type addition struct {
	what, root  string
	directories []string
	lines       []line
}

var newKind = addition{"a kind", "testdata/kind", []string{"."}, []line{
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

var newFamily = addition{"a family", "testdata/family", []string{"."}, []line{
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

// newAggregate is the example of this directory.
var newAggregate = addition{"an aggregate", ".", []string{"internal", "apiserver"}, []line{
	{
		"internal/activity/activity.go", "\t\"github.com/forgeplane/forgeplane/internal/subscription\"",
		"\t\"github.com/forgeplane/forgeplane/internal/toy\"\n",
	},
	{"internal/activity/activity.go", "\tSchedules ", "\tToys *toy.Store\n"},
	{
		"internal/activity/activity.go", "var aggregates = ",
		"\t{toy.Migrations, func(s *Stores, _ clock.PassiveClock) []swept {\n\t\ts.Toys = toy.New(s.Database)\n\t\treturn nil\n\t}},\n",
	},
	{
		"apiserver/rest.go", "\t\"github.com/forgeplane/forgeplane/apiserver/v4/tags\"",
		"\t\"github.com/forgeplane/forgeplane/apiserver/v4/toys\"\n",
	},
	{"apiserver/rest.go", "\t\tbadges.New(", "\t\ttoys.New(k).Table().Named(\"Toys\"),\n"},
}}

// inTree replaces the imports of the example by those of the copy, whose kit has the store.
var inTree = strings.NewReplacer("/test/toy/family\"", "/apiserver/family\"", "/test/toy/", "/")

func TestAddition_takesFewFiles(t *testing.T) {
	tree := copyTree(t)
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

func TestAggregate_takesFiveEditsInTwoFiles(t *testing.T) {
	tree := copyTree(t)
	edited := map[string]bool{}
	for _, l := range newAggregate.lines {
		edited[l.file] = true
	}
	if len(newAggregate.lines) != 5 || len(edited) != 2 {
		t.Errorf("the aggregate takes %d edits in %d files", len(newAggregate.lines), len(edited))
	}
	if !strings.Contains(read(t, filepath.Join(tree, "CONTRIBUTING.md")), "takes five edits in two files") {
		t.Error("CONTRIBUTING.md has another number of edits or of files")
	}
	add(t, tree, newAggregate)
	run(t, tree, "gofmt", "-l", "apiserver", "internal") // fails if a file cannot be parsed
	if !soak.Running() {
		return
	}
	run(t, tree, "go", "vet", "./internal/toy", "./internal/activity", "./apiserver/v4/toys", "./apiserver/virtualtoy")
	run(t, tree, "go", "test", "-vet=off", "./internal/activity")
	run(t, tree, "go", "test", "-vet=off", "./apiserver", "-run", "TestEndpoint_answers", "-update")
	if table := read(t, filepath.Join(tree, "apiserver/testdata/authorization.txt")); !strings.Contains(table, "POST /projects/{id}/toys") {
		t.Error("the table of authorization has no row for the new endpoints")
	}
}

// copyTree copies this tree without the example, and returns the directory of the copy.
func copyTree(t *testing.T) string {
	t.Helper()
	root, tree := checkout(t), t.TempDir()
	for _, file := range strings.Split(strings.TrimSuffix(run(t, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		if !strings.HasPrefix(file, "test/toy/") {
			copyFile(t, filepath.Join(root, file), filepath.Join(tree, file))
		}
	}
	run(t, tree, "git", "init", "--quiet") // some tests ask git which files there are
	return tree
}

// add creates and changes the files of an addition.
func add(t *testing.T, tree string, a addition) {
	t.Helper()
	touched := map[string]bool{}
	for _, directory := range a.directories {
		err := fs.WalkDir(os.DirFS(a.root), directory, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			touched[file] = true
			to := filepath.Join(tree, file)
			copyFile(t, filepath.Join(a.root, file), to)
			return os.WriteFile(to, []byte(inTree.Replace(read(t, to))), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range a.lines {
		touched[l.file] = true
		insert(t, filepath.Join(tree, l.file), l)
	}
	t.Logf("%s takes %d files", a.what, len(touched))
	if len(touched) > most {
		t.Errorf("%d files of %s are written by hand, at most %d are expected: %v", len(touched), a.what, most, touched)
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
	cmd.Env = append(os.Environ(), pool.Variable+"=") // its control planes have the kinds of this checkout
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}
