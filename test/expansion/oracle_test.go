package expansion_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3" // Forgeplane reads configurations with it, too, but the documents here are those that programs print
)

// which is the value of a variable of the pipeline that configurations use.
const which = "more"

// oracle runs gitlab-ci-local in a clone of the repository.
type oracle struct{ program, root string }

// newOracle prepares gitlab-ci-local, which "make soak PART=ci" has installed.
func newOracle(t *testing.T) oracle {
	t.Helper()
	program, err := filepath.Abs("../../bin/gitlab-ci-local/node_modules/.bin/gitlab-ci-local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("gitlab-ci-local is not installed; make gitlab-ci-local installs it: %v", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatalf("gitlab-ci-local needs node: install Node.js 20 or later: %v", err)
	}
	o := oracle{program, t.TempDir()}
	for directory, from := range map[string]string{"repository": repository, "cases": cases} {
		if err := os.CopyFS(filepath.Join(o.root, directory), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"remote", "add", "origin", "https://forge.example.com/acme/web.git"}, {"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=Files"},
	} {
		if out, err := o.command(t, "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return o
}

// command returns a program in the repository, without the configuration of the user.
func (o oracle) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = filepath.Join(o.root, "repository")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.root, "GIT_CONFIG_NOSYSTEM=1"}
	return c
}

// run runs gitlab-ci-local, and returns its output from the first line that is begin. It reports false if the configuration is refused. The
// schema costs a second and refuses null values, so only configurations that are meant to be refused are compared with it.
func (o oracle) run(t *testing.T, name, begin string, args ...string) (string, bool) {
	t.Helper()
	args = append(args, "--file", "../cases/"+name+".yml", "--state-dir", "../state/"+name, "--variable", "WHICH="+which, "--no-evaluate-rule-changes",
		fmt.Sprintf("--json-schema-validation=%t", strings.HasPrefix(name, "refused-")))
	out, err := o.command(t, o.program, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Logf("gitlab-ci-local: %s%s", out, failed.Stderr)
		return "", false
	} else if err != nil {
		t.Fatal(err)
	}
	_, document, ok := strings.Cut("\n"+string(out), "\n"+begin+"\n") // warnings come before it
	if !ok {
		t.Fatalf("gitlab-ci-local printed no document:\n%s", out)
	}
	return begin + "\n" + document, true
}

// expand returns the expanded configuration, and the jobs of a pipeline.
func (o oracle) expand(t *testing.T, name string) view {
	t.Helper()
	preview, ok := o.run(t, name, "---", "--preview")
	if !ok {
		return view{refused: "yes"}
	}
	list, ok := o.run(t, name, "[", "--list-json")
	if !ok {
		return view{refused: "yes"}
	}
	v := view{}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(preview), &document); err != nil {
		t.Fatalf("%v\n%s", err, preview)
	}
	for key, value := range plain(&document).(map[string]any) {
		switch job, isMap := value.(map[string]any); {
		case key == "variables":
			v[".variables"] = text(variables(value))
		case key == "stages":
			v[".stages"] = text(value)
		case isMap && key != "workflow":
			v.add(key, job, long)
		}
	}
	v.addListed(t, list)
	return v
}

// listed is a job that gitlab-ci-local would run.
type listed struct {
	Name, Stage, When string
	AllowFailure      any `json:"allow_failure"`
	Needs             []struct{ Job string }
}

var (
	numbered = regexp.MustCompile(`^(.*): \[(\d+/\d+)\]$`)
	combined = regexp.MustCompile(`^(.*: \[)(.*\])$`)
)

// addListed adds the jobs that are selected. GitLab writes the names of instances as "job 1/2" and "job: [a, b]".
func (v view) addListed(t *testing.T, list string) {
	t.Helper()
	var jobs []listed
	if err := json.Unmarshal([]byte(list), &jobs); err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	for _, j := range jobs {
		if j.When == "never" {
			continue
		}
		name := numbered.ReplaceAllString(j.Name, "$1 $2")
		if parts := combined.FindStringSubmatch(name); parts != nil {
			name = parts[1] + strings.ReplaceAll(parts[2], ",", ", ")
		}
		var needs []string
		for _, n := range j.Needs {
			needs = append(needs, n.Job)
		}
		_, coded := j.AllowFailure.(map[string]any)
		v[name+".selected"] = selected(j.Stage, j.When, j.AllowFailure == true, coded, j.Needs != nil, needs)
	}
}

// selected returns the text of a job of a pipeline.
func selected(stage, when string, canFail, coded, hasNeeds bool, needs []string) string {
	made := stage + " " + when
	if canFail {
		made += ", can fail"
	}
	if coded {
		made += ", can fail with some exit codes"
	}
	if hasNeeds {
		made += ", needs [" + strings.Join(needs, ", ") + "]"
	}
	return made
}
