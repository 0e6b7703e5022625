package process_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/transfer"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/soak"
)

// unfinished is the push of a 64 MiB commit, which a process holds in memory as a whole, and whose last bytes are not sent.
type unfinished struct {
	client *io.PipeWriter
	answer bytes.Buffer
	ended  chan error
}

// pushUnfinished sends the beginning of a push from a client with these capabilities.
func pushUnfinished(ctx context.Context, t *testing.T, r *git.Repository, capabilities string, accepted bool) *unfinished {
	t.Helper()
	pack := bytes.NewBufferString("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x90\x80\x80\x80\x02")
	deflated := zlib.NewWriter(pack)
	if _, err := io.WriteString(deflated, strings.Repeat("m", 64<<20)); err != nil || deflated.Close() != nil {
		t.Fatal(err)
	}
	pack.Truncate(pack.Len() - 1000)
	hooks := t.TempDir()
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	request, client := io.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	u := &unfinished{client: client, ended: make(chan error, 1)}
	go func() {
		u.ended <- transfer.Serve(ctx, r, transfer.ServeOptions{Service: transfer.ReceivePack, HooksDir: hooks, Stdin: request, Stdout: &u.answer,
			Accepted: func() bool { return accepted }})
	}()
	command := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/large\x00" + capabilities
	if _, err := fmt.Fprintf(client, "%04x%s0000%s", len(command)+4, command, pack); err != nil {
		t.Fatal(err)
	}
	return u
}

// end disconnects the client, and returns the error of the push.
func (u *unfinished) end(t *testing.T) error {
	t.Helper()
	if err := u.client.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-u.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the push does not end")
		return nil
	}
}

// unpacked returns a function that lists the files that a running push has unpacked, and the locks of a repository.
func unpacked(r *git.Repository) func() []string {
	return func() []string {
		objects, _ := filepath.Glob(r.Dir() + "/objects/tmp_objdir-*")
		locks, _ := filepath.Glob(r.Dir() + "/*.lock")
		return append(objects, locks...)
	}
}

// A push that is ended must clean up: leftover objects would use up the quota of the repository.
func TestPush_leavesNothingIfMemoryIsShort(t *testing.T) {
	soak.Only(t)
	const why = "This was stopped because not enough memory is available: the server allows all Git processes together 100 MiB. " +
		"Ask for less, or try again later."
	for capabilities, want := range map[string]string{
		"report-status":                  fmt.Sprintf("%04xunpack %s\n", 4+len("unpack \n")+len(why), why),
		"report-status side-band-64k":    fmt.Sprintf("%04x\x02fatal: %s\n", 5+len("fatal: \n")+len(why), why),
		"report-status-v2 side-band-64k": fmt.Sprintf("%04x\x02fatal: %s\n", 5+len("fatal: \n")+len(why), why),
	} {
		t.Run(capabilities, func(t *testing.T) {
			g := NewWithT(t)
			c := gittest.New(t, "sha1")
			small := c.Commit(t, "a", "a")
			e := gittest.EngineOf(t, git.Options{Limits: git.Limits{MemoryTotal: 100 << 20}, MemoryWait: time.Minute})
			r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
			push := pushUnfinished(fair.With(t.Context(), fair.User(1)), t, r, capabilities, false)
			g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))
			g.Expect(unpacked(r)()).NotTo(BeEmpty())

			_, waiting := archive(t, r, fair.User(2), small)
			g.Eventually(unpacked(r)).WithTimeout(patience.Wait).Should(BeEmpty())
			err := push.end(t)
			g.Expect(git.LimitReached(err)).To(Equal(why), "%v", err)
			g.Expect(push.answer.String()).To(ContainSubstring(want))
			g.Eventually(waiting).WithTimeout(patience.Wait).Should(Receive(BeNil()))
		})
	}
}

// A push that was accepted must complete.
func TestPush_completesOnceAcceptedIfMemoryIsShort(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	small := c.Commit(t, "a", "a")
	e := gittest.EngineOf(t, git.Options{Limits: git.Limits{MemoryTotal: 100 << 20}, MemoryWait: 8 * time.Second})
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
	push := pushUnfinished(fair.With(t.Context(), fair.User(1)), t, r, "report-status", true)
	g.Eventually(e.Processes().HeavyMemory).WithTimeout(patience.Wait).Should(BeNumerically(">", 60))
	_, waiting := archive(t, r, fair.User(2), small)
	g.Eventually(waiting).WithTimeout(patience.Wait).Should(Receive(MatchError(process.ErrBusy)))
	g.Expect(unpacked(r)()).NotTo(BeEmpty())
	g.Expect(push.end(t)).To(Succeed())
}

func TestPush_leavesNothingBehindWhenCancelled(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	r := gittest.Repository(t, gittest.EngineOf(t, git.Options{}), gittest.Storage(t, c), "b.git")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	push := pushUnfinished(ctx, t, r, "report-status", false)
	g.Eventually(unpacked(r)).WithTimeout(patience.Wait).ShouldNot(BeEmpty())
	gone := errors.New("the client has gone away")
	cancel(gone)
	g.Eventually(unpacked(r)).WithTimeout(patience.Wait).Should(BeEmpty())
	g.Expect(push.end(t)).To(MatchError(gone))
}

// If git had to be killed, the engine removes what git would have removed.
func TestPush_leavesNothingBehindWhenKilled(t *testing.T) {
	g := NewWithT(t)
	c := gittest.New(t, "sha1")
	c.Commit(t, "a", "a")
	binary, err := exec.LookPath("git")
	g.Expect(err).NotTo(HaveOccurred())
	stubborn, pid := t.TempDir(), filepath.Join(t.TempDir(), "pid")
	g.Expect(os.WriteFile(filepath.Join(stubborn, "git"),
		[]byte("#!/bin/sh\ntrap '' TERM\nunset GIT_EXEC_PATH\nexec "+binary+" \"$@\"\n"), 0o755)).To(Succeed())
	e := gittest.EngineOf(t, git.Options{Binary: gittest.Script(t, `case "$1" in receive-pack) echo $$ >`+pid+`; export GIT_EXEC_PATH=`+stubborn+`;; esac
exec `+binary+` "$@"`)})
	r := gittest.Repository(t, e, gittest.Storage(t, c), "b.git")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	push := pushUnfinished(ctx, t, r, "report-status", false)
	other := filepath.Join(r.Dir(), "objects/tmp_objdir-incoming-other") // belongs to another running push
	g.Expect(os.Mkdir(other, 0o755)).To(Succeed())
	g.Eventually(unpacked(r)).WithTimeout(patience.Wait).Should(HaveLen(2))
	cancel()
	text, err := os.ReadFile(pid)
	g.Expect(err).NotTo(HaveOccurred())
	leader, err := strconv.Atoi(strings.TrimSpace(string(text)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error { return syscall.Kill(leader, 0) }).WithTimeout(patience.Wait).Should(MatchError(syscall.ESRCH))
	g.Expect(push.end(t)).To(MatchError(context.Canceled))
	g.Expect(unpacked(r)()).To(Equal([]string{other}))
}
