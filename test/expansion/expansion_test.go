// Package expansion_test compares the expansion of CI configurations with that of gitlab-ci-local, which has the semantics of GitLab and
// shares no code with Forgeplane.
package expansion_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/forgeplane/forgeplane/test/soak"
)

const (
	// cases has one configuration in each file, and repository the files of the commit that they can include and ask for.
	cases      = "testdata/cases"
	repository = "testdata/repository"
	// refused is the only key of a configuration that is invalid.
	refused = "refused"
	// least is the least number of configurations.
	least = 60
)

// view is an expanded configuration: a text for each keyword of each job, as in "build.script".
type view map[string]string

func TestExpansion_agreesWithGitLabCILocal(t *testing.T) {
	soak.Only(t)
	o := newOracle(t)
	names := caseNames(t)
	if len(names) < least {
		t.Errorf("there are %d configurations, which must be at least %d", len(names), least)
	}
	for name := range differences {
		if !slices.Contains(names, name) {
			t.Errorf("differences has reasons for %q, which is not a configuration in %s", name, cases)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(filepath.Join(cases, name+".yml"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, name, expand(t, content), o.expand(t, name))
		})
	}
}

// caseNames returns the names of all configurations.
func caseNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(cases + "/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(filepath.Base(file), ".yml")
	}
	return names
}

// compare reports differences without a reason, and reasons without a difference.
func compare(t *testing.T, name string, ours, theirs view) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(ours))
	for key := range theirs {
		keys = append(keys, key)
	}
	if ours[refused] != "" || theirs[refused] != "" {
		keys = []string{refused} // the other view has all keys of an expanded configuration
	}
	reasons := maps.Clone(differences[name])
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if ours[key] == theirs[key] {
			continue
		}
		if reasons[key] == "" {
			t.Errorf("%s differs, and differences has no reason for it\nForgeplane:      %s\ngitlab-ci-local: %s", key, ours[key], theirs[key])
		}
		delete(reasons, key)
	}
	for key, reason := range reasons {
		t.Errorf("%s does not differ any more: remove it from differences, where it has the reason %q", key, reason)
	}
}
