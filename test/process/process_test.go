package process_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/process"
)

// parentVariable makes this test binary the parent of a program instead of a test. Its value is the script of the program.
const parentVariable = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if text := os.Getenv(parentVariable); text != "" {
		p, err := process.Start(process.Program{Name: "child", Path: "/bin/sh", Args: []string{"-c", text}, Log: os.DevNull})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		<-p.Done()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func shell(t *testing.T, name, text string) process.Program {
	t.Helper()
	return process.Program{
		Name: name, Path: "/bin/sh", Args: []string{"-c", text}, Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), name+".log"),
	}
}

func start(t *testing.T, program process.Program) *process.Process {
	t.Helper()
	p, err := process.Start(program)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// life is a pipe by which a process shows that it is alive. The process writes a word when it opens the pipe, and the pipe ends when no process has
// it open.
type life struct {
	path   string
	reader *bufio.Reader
}

func newLife(t *testing.T) *life {
	t.Helper()
	path := filepath.Join(t.TempDir(), "life")
	NewWithT(t).Expect(syscall.Mkfifo(path, 0o600)).To(Succeed())
	return &life{path: path}
}

// begins waits until a process has opened the pipe.
func (l *life) begins(t *testing.T) {
	t.Helper()
	file, err := os.Open(l.path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = file.Close() })
	l.reader = bufio.NewReader(file)
	NewWithT(t).Expect(l.reader.ReadString('\n')).To(Equal("alive\n"))
}

// ends waits until every process that had the pipe open is gone.
func (l *life) ends(t *testing.T) {
	t.Helper()
	NewWithT(t).Expect(io.ReadAll(l.reader)).To(BeEmpty())
}

func TestEnded_includesTheLastLines(t *testing.T) {
	g := NewWithT(t)
	p := start(t, shell(t, "worker", "for i in $(seq 30); do echo line $i; done; echo last words >&2; exit 3"))
	g.Eventually(p.Done()).Should(BeClosed())
	g.Expect(p.Ended()).To(MatchError(And(ContainSubstring("worker ended (exit status 3)"),
		ContainSubstring("line 30\nlast words"), Not(ContainSubstring("line 16\n")))))
}

func TestTail_excludesEarlierRuns(t *testing.T) {
	g := NewWithT(t)
	program := shell(t, "worker", "echo first")
	g.Eventually(start(t, program).Done()).Should(BeClosed())
	program.Args = []string{"-c", "echo second"}
	second := start(t, program)
	g.Eventually(second.Done()).Should(BeClosed())
	g.Expect(second.Tail()).To(Equal("second"))
	g.Expect(os.ReadFile(program.Log)).To(BeEquivalentTo("first\nsecond\n"))
}

func TestStart_failsIfTheProgramDoesNotExist(t *testing.T) {
	_, err := process.Start(process.Program{Name: "nobody", Path: "/does/not/exist", Log: os.DevNull})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("starting nobody"), ContainSubstring("/does/not/exist"))))
}

func TestStop_letsAProcessFinish(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t)
	p := start(t, shell(t, "worker", "trap 'echo finished; exit 0' TERM; exec 3>"+l.path+"; echo alive >&3; sleep 1000 & wait"))
	l.begins(t)
	g.Expect(p.Stop()).To(Succeed())
	g.Expect(p.Tail()).To(Equal("finished"))
	g.Expect(p.Stop()).To(Succeed(), "a second time")
}

func TestStop_killsAProcessAfterItsGracePeriod(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t)
	program := shell(t, "stubborn", "trap '' TERM; exec 3>"+l.path+"; echo alive >&3; exec sleep 1000")
	program.Grace = 100 * time.Millisecond
	p := start(t, program)
	l.begins(t)
	g.Expect(p.Stop()).To(MatchError(ContainSubstring("stubborn did not end within 100ms")))
	l.ends(t)
}

func TestStop_endsTheWholeProcessGroup(t *testing.T) {
	l := newLife(t)
	p := start(t, shell(t, "parent", "(trap '' TERM; exec 3>"+l.path+"; echo alive >&3; exec sleep 1000) & wait"))
	l.begins(t)
	NewWithT(t).Expect(p.Stop()).To(Succeed())
	l.ends(t)
}

// leaving is a script that starts a child that ignores SIGTERM, and then does something else.
func leaving(l *life, then string) string {
	return "(trap '' TERM; exec 3>" + l.path + "; echo alive >&3; exec sleep 1000) >/dev/null 2>&1 & " + then
}

func TestRun_endsTheWholeProcessGroup(t *testing.T) {
	g, l := NewWithT(t), newLife(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- process.Run(exec.CommandContext(ctx, "/bin/sh", "-c", leaving(l, "wait"))) }()
	l.begins(t)
	cancel()
	g.Expect(<-ended).To(MatchError("signal: killed"))
	l.ends(t)

	l = newLife(t)
	finish := filepath.Join(t.TempDir(), "finish")
	g.Expect(syscall.Mkfifo(finish, 0o600)).To(Succeed())
	go func() {
		ended <- process.Run(exec.CommandContext(t.Context(), "/bin/sh", "-c", leaving(l, "read line <"+finish+"; exit 3")))
	}()
	l.begins(t)
	g.Expect(os.WriteFile(finish, []byte("now\n"), 0o600)).To(Succeed())
	g.Expect(<-ended).To(MatchError("exit status 3"))
	l.ends(t)
}

func TestProcess_diesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a signal for the death of the parent")
	}
	g := NewWithT(t)
	l := newLife(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=exec 3>"+l.path+"; echo alive >&3; exec sleep 1000")
	g.Expect(parent.Start()).To(Succeed())
	l.begins(t)
	g.Expect(parent.Process.Kill()).To(Succeed())
	_ = parent.Wait()
	l.ends(t)
}

func TestGroup_stopsTheLastStartedProcessFirst(t *testing.T) {
	g := NewWithT(t)
	order := filepath.Join(t.TempDir(), "order")
	group := process.NewGroup()
	for _, name := range []string{"first", "second", "third"} {
		l := newLife(t)
		_, err := group.Start(shell(t, name, fmt.Sprintf(
			"trap 'echo %s >> %s; exit 0' TERM; exec 3>%s; echo alive >&3; sleep 1000 & wait", name, order, l.path)))
		g.Expect(err).NotTo(HaveOccurred())
		l.begins(t)
	}
	g.Expect(group.Stop()).To(Succeed())
	text, err := os.ReadFile(order)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(text))).To(Equal([]string{"third", "second", "first"}))
	g.Expect(group.Failed()).NotTo(Receive(), "to stop is no failure")
	_, err = group.Start(shell(t, "late", "true"))
	g.Expect(err).To(HaveOccurred())
}

func TestGroup_failsWithTheFirstProcessThatEnds(t *testing.T) {
	g := NewWithT(t)
	group := process.NewGroup()
	t.Cleanup(func() { _ = group.Stop() })
	for name, text := range map[string]string{"steady": "exec sleep 1000", "fragile": "echo a reason; exit 7"} {
		_, err := group.Start(shell(t, name, text))
		g.Expect(err).NotTo(HaveOccurred())
	}
	var failure error
	g.Eventually(group.Failed()).Should(Receive(&failure))
	g.Expect(failure).To(MatchError(And(ContainSubstring("fragile ended (exit status 7)"), ContainSubstring("a reason"))))
}
