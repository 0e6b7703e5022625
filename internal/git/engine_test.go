package git_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

func TestNewEngine_saysWhatIsWrong(t *testing.T) {
	for about, c := range map[string]struct{ binary, want string }{
		"missing":  {"/nonexistent/git", "git 2.39.1 or newer must be installed"},
		"too old":  {gittest.Script(t, "echo git version 2.38.9"), "is git 2.38.9: 2.39.1 or newer must be installed"},
		"not git":  {gittest.Script(t, "echo hello"), "the answer is not that of git"},
		"failing":  {gittest.Script(t, "echo no licence >&2; exit 3"), "no licence"},
		"babbling": {gittest.Script(t, "yes"), process.ErrOutputTooLarge.Error()},
	} {
		_, err := git.NewEngine(t.Context(), git.Options{Binary: c.binary})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", about, err, c.want)
		}
	}
}

func TestVersions(t *testing.T) {
	if v := gittest.NewEngine(t).Version(); !v.AtLeast(process.Needed) {
		t.Errorf("got %s", v)
	}
	for text, good := range map[string]bool{
		"2.39.1": true, "2.39.2": true, "2.39.10": true, "2.40.0": true, "2.40": true, "2.100.0": true, "3.0.0": true,
		"2.39.5 (Debian)": true, "2.39.5 (Apple Git-154)": true, "2.39.1.windows.1": true, "2.39.2-rc0": true, "2.40.0-rc1": true, "2.40.0.rc1": true,
		"2.39.1-1+deb12u1": true,
		"2.39.0":           false, "2.39": false, "2.39.0.windows.2": false, "2.39.0-rc2": false, "2.39.GIT": false, "2.38.9": false,
		"1.99.9": false, "2.4.12": false, "2.39 (Apple Git-200)": false,
	} {
		_, err := git.NewEngine(t.Context(), git.Options{Binary: gittest.Script(t, "echo 'git version "+text+"'")})
		if good && err != nil || !good && (err == nil || !strings.Contains(err.Error(), "2.39.1 or newer must be installed")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The environment of the service must not affect git: GIT_DIR alone would make every answer wrong.
func TestEngine_doesNotInheritTheEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"GIT_DIR": "/nonexistent", "GIT_OBJECT_DIRECTORY": "/nonexistent", "GIT_EXEC_PATH": "/nonexistent",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "nonsense",
		"GIT_CONFIG_PARAMETERS": "'core.bare'='nonsense'", "HOME": badHome(t), "XDG_CONFIG_HOME": badHome(t),
	} {
		t.Setenv(name, value)
	}
	r := gittest.Repository(t, gittest.NewEngine(t), t.TempDir(), "a.git")
	if err := r.Init(t.Context(), git.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	if h, err := refs.ReadHead(t.Context(), r); err != nil || h.Branch != "main" {
		t.Errorf("got %+v, %v", h, err)
	}
}

// badHome returns a home directory whose configuration makes every git command fail.
func badHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{dir + "/.gitconfig", dir + "/git/config"} {
		_ = os.MkdirAll(dir+"/git", 0o755)
		if err := os.WriteFile(name, []byte("[nonsense"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEngine_endsTheWholeProcessGroup(t *testing.T) {
	pids := t.TempDir() + "/pids"
	// The child ignores the request to end, like its parent.
	e := gittest.EngineWith(t, `case "$1" in version) ;; *) trap '' TERM; sleep 600 & echo $$ $! >`+pids+`.tmp; mv `+pids+`.tmp `+pids+`; wait; wait;; esac`)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")

	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	result := make(chan error, 1)
	go func() { _, err := refs.ReadHead(ctx, r); result <- err }()
	var leader, child int
	gittest.Eventually(t, "the command has started", func() bool {
		text, _ := os.ReadFile(pids)
		return gittest.Scan(string(text), &leader, &child)
	})
	cancel(stopped)
	if err := <-result; !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	for _, pid := range []int{leader, child} {
		gittest.Eventually(t, "the process is gone", func() bool { return gittest.Gone(pid) })
	}
}

func TestEngine_endsCommandsWithoutADeadline(t *testing.T) {
	hangs := gittest.Script(t, `case "$1" in version) exec git "$@";; *) exec sleep 600;; esac`)
	e, err := git.NewEngine(t.Context(), git.Options{Binary: hangs, CommandTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
	for what, run := range map[string]func() error{
		"refs": func() error {
			for _, err := range refs.List(t.Context(), r, "refs/") {
				return err
			}
			return nil
		},
		"changed paths": func() error { _, err := history.ChangedPaths(t.Context(), r, id, id, 100, nil); return err },
		"an ancestor":   func() error { _, err := history.IsAncestor(t.Context(), r, id, id, nil); return err },
		"a merge base":  func() error { _, err := history.MergeBase(t.Context(), r, id, id, nil); return err },
		"the head":      func() error { return refs.SetHead(t.Context(), r, "main") },
	} {
		if err := run(); !errors.Is(err, process.ErrBusy) || !strings.Contains(err.Error(), "took longer than 100ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestError_hasTheMessageOfGit(t *testing.T) {
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	r := gittest.Bare(t, c)
	_, err := history.ChangedPaths(t.Context(), r, strings.Repeat("1", 40), strings.Repeat("2", 40), 1000, nil)
	failed := (*process.Error)(nil)
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if failed.Command != "diff-tree" || failed.ExitCode != 128 || !strings.Contains(failed.Stderr, "bad object") {
		t.Errorf("got %+v", failed)
	}
}
