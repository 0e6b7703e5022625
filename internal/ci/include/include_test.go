package include_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/internal/ci/condition"
	"github.com/forgeplane/forgeplane/internal/ci/include"
)

// tree is the files of a commit. It records the paths that are asked for.
type tree struct {
	files map[string]string
	asked []string
}

func newTree() *tree {
	return &tree{files: map[string]string{
		"ci/a.yml": "a: {script: a}", "ci/b.yml": "include: [/ci/a.yml, $PATH]", "ci/deep/c.yaml": "include: ci/*.yml", "d.txt": "", "..e.yml": "e: {script: e}",
	}}
}

func (*tree) Project() string { return "acme/web" }
func (*tree) Commit() string  { return "1234567890" }

func (f *tree) Read(_ context.Context, path string, _ int) ([]byte, error) {
	f.asked = append(f.asked, path)
	if content, ok := f.files[path]; ok {
		return []byte(content), nil
	}
	return nil, fs.ErrNotExist
}

func (f *tree) Paths(context.Context) (all []string, err error) {
	for path := range f.files {
		all = append(all, path)
	}
	return all, nil
}

func (*tree) Changed(context.Context, string) ([]string, bool, error) { return nil, false, nil }

// load includes a path, which is also the value of all variables, and returns the paths of the included files.
func load(t *testing.T, files *tree, path string) (included []string, problems string) {
	t.Helper()
	content, err := json.Marshal(map[string]any{"include": []string{path, "$PATH"}, "job": map[string]string{"script": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	variables := func(string) (value string, raw, ok bool) { return path, true, true }
	l := include.Loader{Variables: variables, Context: condition.New(files, variables)}
	_, all, mistakes, _, err := l.Load(t.Context(), "x.yml", content, files)
	if err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	for _, file := range all {
		included = append(included, file.Path)
	}
	return included, mistakes.Error()
}

func TestLoad_asksForNoPathOutside(t *testing.T) {
	for _, path := range []string{"../a.yml", "ci/../../a.yml", "ci/../ci/a.yml", "//ci/a.yml", "ci//a.yml", "./ci/a.yml", "ci/./a.yml", "../*/a.yml"} {
		files := newTree()
		included, problems := load(t, files, path)
		if len(included) > 0 || len(files.asked) > 0 || !strings.Contains(problems, "no file") {
			t.Errorf("%s: includes %v, asks for %v, and reports %s", path, included, files.asked, problems)
		}
	}
}

// FuzzInclude looks for paths of include that lead out of the repository, or never end.
func FuzzInclude(f *testing.F) {
	for _, path := range []string{"ci/a.yml", "/ci/b.yml", "ci/**/*.y*ml", "../a.yml", "ci/../ci/a.yml", "ci/deep/c.yaml", "..e.yml", "https://example.com/a.yml", "$A/${B}.yml", "a\x00.yml", "*"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		files := newTree()
		included, _ := load(t, files, path)
		if len(files.asked) > include.MaxFiles {
			t.Errorf("%q: asks for %d files", path, len(files.asked))
		}
		for _, asked := range files.asked {
			if parts := strings.Split(asked, "/"); asked == "" || slices.Contains(parts, "") || slices.Contains(parts, ".") || slices.Contains(parts, "..") {
				t.Errorf("%q: asks for %q", path, asked)
			}
		}
		for _, file := range included {
			if _, ok := files.files[file]; !ok {
				t.Errorf("%q: includes %q", path, file)
			}
		}
	})
}
