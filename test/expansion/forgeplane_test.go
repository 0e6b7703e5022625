package expansion_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/forgeplane/forgeplane/internal/ci"
	"github.com/forgeplane/forgeplane/internal/ci/config"
	"github.com/forgeplane/forgeplane/internal/ci/document"
)

// files are the files of the repository. It implements include.Files.
type files struct{}

func (files) Project() string { return "acme/web" }
func (files) Commit() string  { return "1234567890" }

func (files) Read(_ context.Context, path string, _ int) ([]byte, error) {
	if !fs.ValidPath(path) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(filepath.Join(repository, path))
}

func (files) Paths(context.Context) (paths []string, err error) {
	err = fs.WalkDir(os.DirFS(repository), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// Changed knows no change, so that changes holds, as in gitlab-ci-local with --no-evaluate-rule-changes.
func (files) Changed(context.Context, string) ([]string, bool, error) { return nil, false, nil }

// expand returns the expanded configuration of Forgeplane, and the jobs of a pipeline.
func expand(t *testing.T, content []byte) view {
	t.Helper()
	p := &ci.Pipeline{
		Ref: "main", Source: "push", Project: "acme/web", Files: files{}, Variables: []config.Variable{{Key: "WHICH", Value: which}},
		Predefined: []config.Variable{{Key: "CI_COMMIT_BRANCH", Value: "main"}, {Key: "CI_PIPELINE_SOURCE", Value: "push"}},
	}
	l, err := p.Load(t.Context(), ".forgeplane-ci.yml", content)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Problems) > 0 {
		t.Logf("Forgeplane: %v", l.Problems)
		return view{refused: "yes"}
	}
	rendered, err := document.Render(l.Document)
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(rendered), &node); err != nil {
		t.Fatal(err)
	}
	written, v := plain(&node).(map[string]any), view{".stages": text(l.Config.Stages)}
	if all := asMap(t, struct{ Variables []config.Variable }{l.Config.Variables}); len(l.Config.Variables) > 0 {
		v[".variables"] = text(all["variables"])
	}
	for _, j := range l.Config.Jobs {
		job := expanded(t, j)
		for _, key := range conditions { // expressions do not know their texts
			job[key] = written[j.Name].(map[string]any)[key]
		}
		v.add(j.Name, job, func(map[string]any) {})
	}
	v.addPlan(t, p, l.Config)
	return v
}

// addPlan adds the jobs that are selected.
func (v view) addPlan(t *testing.T, p *ci.Pipeline, c *config.Config) {
	t.Helper()
	plan, err := p.Plan(t.Context(), c)
	if errors.Is(err, ci.ErrFiltered) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	for _, j := range plan.Jobs {
		var needs []string
		for _, n := range j.Job.Needs {
			needs = append(needs, n.Job)
		}
		v[j.Name+".selected"] = selected(j.Stage, j.When, j.AllowFailure.Always, j.AllowFailure.ExitCodes != nil, j.HasNeeds, needs)
	}
}

// expanded returns the keywords of a job, from the fields that hold them.
func expanded(t *testing.T, j *config.Job) map[string]any {
	t.Helper()
	job := asMap(t, j)
	delete(job, "name")
	if failure := job["allow_failure"].(map[string]any); failure["set"] != true {
		delete(job, "allow_failure") // a default, which is part of what is selected
	} else {
		delete(failure, "set")
	}
	if environment, ok := job["environment"].(map[string]any); ok {
		delete(environment, "auto_stop_in") // its text remains
	}
	if artifacts, ok := job["artifacts"].(map[string]any); ok {
		reports := map[string]any{}
		for _, report := range items(artifacts["reports"]) {
			r := report.(map[string]any)
			reports[r["type"].(string)] = map[string]any{"paths": r["paths"], "coverage_format": r["coverage_format"]}
		}
		artifacts["reports"] = reports
	}
	return job
}

// asMap returns a struct as a map with the names of keywords.
func asMap(t *testing.T, of any) map[string]any {
	t.Helper()
	content, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return keywords(m).(map[string]any)
}

var (
	afterWord    = regexp.MustCompile(`([a-z])([A-Z])`)
	afterAcronym = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// keywords returns a value with the names of fields as keywords, as in id_tokens, without places, and with variables as texts.
func keywords(of any) any {
	switch of := of.(type) {
	case []any:
		made := make([]any, len(of))
		for i, item := range of {
			made[i] = keywords(item)
		}
		if len(of) > 0 && isVariable(of[0]) {
			slices.SortFunc(made, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		return made
	case map[string]any:
		if isVariable(of) {
			return assignment(of["Key"].(string), of["Value"].(string), of["Raw"] == true)
		}
		if of["Line"] != nil {
			delete(of, "File")
			delete(of, "Line")
		}
		made := map[string]any{}
		for name, value := range of {
			name = afterAcronym.ReplaceAllString(afterWord.ReplaceAllString(name, "${1}_$2"), "${1}_$2")
			made[strings.ToLower(name)] = keywords(value)
		}
		return made
	default:
		return of
	}
}

// isVariable reports whether a value is a config.Variable.
func isVariable(of any) bool {
	m, _ := of.(map[string]any)
	return m["Key"] != nil && m["Value"] != nil
}
