package gittest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
)

// NewEngine returns an engine with the default options.
func NewEngine(t testing.TB) *git.Engine {
	t.Helper()
	return EngineOf(t, git.Options{})
}

// EngineOf returns an engine, which is closed at the end of the test.
func EngineOf(t testing.TB, o git.Options) *git.Engine {
	t.Helper()
	e, err := git.NewEngine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// EngineWith returns an engine whose git is a shell script that runs before and then becomes the real git.
func EngineWith(t testing.TB, before string) *git.Engine {
	t.Helper()
	return EngineOf(t, git.Options{Binary: Script(t, before+"\nexec git \"$@\"")})
}

// Script returns the path of an executable shell script.
func Script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "git.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Repository returns a handle on the repository at a path in a storage directory.
func Repository(t testing.TB, e *git.Engine, storage, path string) *git.Repository {
	t.Helper()
	r, err := e.Repository(storage, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Bare returns a new repository with the content of a client.
func Bare(t testing.TB, c *Client) *git.Repository {
	t.Helper()
	r := Repository(t, NewEngine(t), t.TempDir(), "a/b.git")
	if err := r.Init(t.Context(), git.InitOptions{ObjectFormat: c.Git(t, "rev-parse", "--show-object-format")}); err != nil {
		t.Fatal(err)
	}
	c.Git(t, "push", "--quiet", "--mirror", r.Dir())
	return r
}

// Entries lists the entries of a directory.
func Entries(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Formats are the object formats.
var Formats = []string{"sha1", "sha256"}

// Storage returns a storage directory in which "b.git" is a clone of the client.
func Storage(t *testing.T, c *Client) string {
	t.Helper()
	storage := t.TempDir()
	c.Git(t, "clone", "--quiet", "--bare", ".", storage+"/b.git")
	return storage
}

// Eventually waits until something is the case, at most 20 seconds.
func Eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not reached: %s", what)
		}
	}
}

// Gone reports whether a process has ended. A zombie has ended too.
func Gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Contains(string(stat), ") Z ")
}

// Scan reads numbers from a text. It reports whether there are enough.
func Scan(text string, into ...*int) bool {
	args := make([]any, len(into))
	for i := range into {
		args[i] = into[i]
	}
	n, _ := fmt.Sscan(text, args...)
	return n == len(into)
}

// Limited returns an engine with limits, which is closed at the end of the test.
func Limited(t testing.TB, binary string, l git.Limits) *git.Engine {
	t.Helper()
	return EngineOf(t, git.Options{Binary: binary, Limits: l})
}

// Begin is a writer that signals when it has received something.
type Begin struct {
	// Begun is closed once something was received.
	Begun chan struct{}
	once  sync.Once
}

// Write implements io.Writer.
func (b *Begin) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.Begun) })
	return len(p), nil
}

// Observed is an engine that records the ids of the processes with which it reads objects.
type Observed struct {
	*git.Engine
	// Log is the file with the ids.
	Log string
}

// Observe returns an engine that records its readers.
func Observe(t testing.TB, o git.Options) Observed {
	t.Helper()
	log := filepath.Join(t.TempDir(), "pids")
	o.Binary = Script(t, `case "$1" in cat-file) echo $$ >> `+log+` ;; esac
exec git "$@"`)
	return Observed{EngineOf(t, o), log}
}

// Started returns the ids of all processes that were started.
func (o Observed) Started(t testing.TB) []int {
	t.Helper()
	text, err := os.ReadFile(o.Log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.Lines(string(text)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// Alive returns the ids of the processes that are still running.
func (o Observed) Alive(t testing.TB) (alive []int) {
	t.Helper()
	for _, pid := range o.Started(t) {
		if syscall.Kill(pid, 0) == nil {
			alive = append(alive, pid)
		}
	}
	return alive
}

// Of returns a repository of the engine with the content of a client.
func (o Observed) Of(t testing.TB, c *Client) *git.Repository {
	t.Helper()
	return Repository(t, o.Engine, filepath.Dir(Bare(t, c).Dir()), "b.git")
}
