package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
)

var limitLine = regexp.MustCompile(`(?m)^Max (core file size|cpu time|data size) +(\S+) +(\S+)`)

// The limits of a process apply to its children too. Here the child of a git process is "cat".
func TestProcesses_bounded(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "limits")
	binary := gittest.Script(t, `case "$1" in version) ;; *) cat /proc/self/limits >`+seen+`; esac; exec git "$@"`)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "a")
	storage := gittest.Storage(t, c)
	for name, byShell := range map[string]bool{"halted": false, "by a shell": true} {
		t.Run(name, func(t *testing.T) {
			e := gittest.Limited(t, binary, git.Limits{Memory: 512 << 20, CPU: 90 * time.Second})
			if byShell {
				e.Processes().ByShell()
			} else if !e.Processes().Halts() {
				t.Skip("processes cannot be halted here")
			}
			r := gittest.Repository(t, e, storage, "b.git")
			for what, run := range map[string]struct {
				do        func() error
				cpu, data string
			}{
				"a command": {func() error { _, err := history.MergeBase(t.Context(), r, id, id, nil); return err }, "90 95", "536870912 536870912"},
				"a reader":  {func() error { _, _, err := r.Read(t.Context(), id, 1000); return err }, "unlimited unlimited", "268435456 268435456"},
			} {
				g := NewWithT(t)
				g.Expect(run.do()).To(Succeed(), what)
				text, err := os.ReadFile(seen)
				g.Expect(err).NotTo(HaveOccurred())
				got := map[string]string{}
				for _, line := range limitLine.FindAllStringSubmatch(string(text), -1) {
					got[line[1]] = line[2] + " " + line[3]
				}
				g.Expect(got).To(Equal(map[string]string{"core file size": "0 0", "cpu time": run.cpu, "data size": run.data}), what)
			}
		})
	}
}

func TestProcesses_withoutLimits(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "limits")
	binary := gittest.Script(t, `case "$1" in version) ;; *) cat /proc/self/limits >`+seen+`; esac; exec git "$@"`)
	r := gittest.Repository(t, gittest.Limited(t, binary, git.Limits{Memory: -1, MemoryTotal: -1, CPU: -1}), t.TempDir(), "a.git")
	g := NewWithT(t)
	g.Expect(r.Init(t.Context(), git.InitOptions{})).To(Succeed())
	text, err := os.ReadFile(seen)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(MatchRegexp(`(?m)^Max data size +unlimited`))
	g.Expect(string(text)).To(MatchRegexp(`(?m)^Max cpu time +unlimited`))
}

// One object, which nothing has read since it was pushed, needs more memory than a process may have.
func TestMemory_exceeded(t *testing.T) {
	const sentence = "This takes more than the 32 MiB of memory that the server allows a Git process."
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	small := c.Commit(t, "a", "a")
	lines := func(with string) string { return strings.Repeat("\n"+with, 2<<20) }
	from, to := c.Commit(t, "lines", lines("a")), c.Commit(t, "lines", lines("b"))
	large := c.Write(t, "commit", "tree "+c.Git(t, "rev-parse", small+"^{tree}")+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\n"+
		strings.Repeat("m", 64<<20))
	c.Git(t, "update-ref", "refs/heads/large", large)
	r := gittest.Repository(t, gittest.Limited(t, "", git.Limits{Memory: 32 << 20}), gittest.Storage(t, c), "b.git")

	_, _, err := r.Read(t.Context(), large, 128<<20)
	g.Expect(git.LimitReached(err)).To(Equal(sentence), "a reader: %v", err)
	_, err = history.Compare(t.Context(), r, from, to, time.Minute)
	g.Expect(git.LimitReached(err)).To(Equal(sentence), "a command: %v", err)

	_, content, err := r.Read(t.Context(), small, 1000)
	g.Expect(err).NotTo(HaveOccurred(), "another request")
	g.Expect(content).To(ContainSubstring("tree "))
}

func TestProcessorTime_exceeded(t *testing.T) {
	g := NewWithT(t)
	// The busy process is the leader of the group, or a child that git starts and waits for.
	for name, busy := range map[string]string{
		"leader": `while :; do :; done`,
		"child":  `echo "error: index-pack died of signal 24" >&2; exit 128`,
	} {
		binary := gittest.Script(t, `case "$1" in version) exec git "$@";; *) `+busy+`;; esac`)
		r := gittest.Repository(t, gittest.Limited(t, binary, git.Limits{CPU: time.Second}), t.TempDir(), "a.git")
		err := r.Init(t.Context(), git.InitOptions{})
		g.Expect(git.LimitReached(err)).To(Equal("This takes more than the 1s of processor time that the server allows a Git process."),
			"%s: %v", name, err)
	}
}

func TestLimitReached_ofOthers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(git.LimitReached(nil)).To(BeEmpty())
	g.Expect(git.LimitReached(errors.New("no"))).To(BeEmpty())
	// A failure of another server is not a limit of this one.
	binary := gittest.Script(t, `case "$1" in version) exec git "$@";; *) echo "remote: fatal: Out of memory, malloc failed" >&2; exit 128;; esac`)
	r := gittest.Repository(t, gittest.Limited(t, binary, git.Limits{}), t.TempDir(), "a.git")
	err := r.Init(t.Context(), git.InitOptions{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(git.LimitReached(err)).To(BeEmpty())
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1000: "1000 bytes", 1024: "1 KiB", 1 << 30: "1 GiB", 3 << 29: "1536 MiB", 1 << 41: "2 TiB"} {
		if got := process.FormatBytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
