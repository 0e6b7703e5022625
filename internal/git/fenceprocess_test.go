package git_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/gittest"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
)

// roleEnv is set if this executable runs as another process of the forge: its value says what to do in the repository at dirEnv.
const roleEnv, dirEnv, binaryEnv = "FORGEPLANE_TEST_FENCE", "FORGEPLANE_TEST_FENCE_DIR", "FORGEPLANE_TEST_FENCE_GIT"

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	e, err := git.NewEngine(ctx, git.Options{Binary: os.Getenv(binaryEnv)})
	if err == nil {
		dir := os.Getenv(dirEnv)
		var r *git.Repository
		if r, err = e.Repository(filepath.Dir(dir), filepath.Base(dir)); err == nil {
			err = map[string]func(context.Context, *git.Repository) error{
				"write": writeOnAndOn, "close": closeOnAndOn, "hold": holdClosed, "read": readRefs,
			}[role](ctx, r)
		}
	}
	fmt.Fprintln(os.Stdout, "failed:", err)
	os.Exit(1)
}

// writeOnAndOn writes as often as it can, and reports each write.
func writeOnAndOn(ctx context.Context, r *git.Repository) error {
	for {
		in, end, err := r.BeginWrite(ctx)
		switch {
		case errors.Is(err, git.ErrClosed):
			<-time.After(time.Millisecond)
			continue
		case err != nil:
			return err
		}
		_ = refs.Apply(in, r, update.Ref{Name: "refs/heads/x", New: os.Getenv("FORGEPLANE_TEST_FENCE_ID")})
		end()
		fmt.Fprintln(os.Stdout, "wrote")
	}
}

// journal is the file to which the git of the test writes.
func journal(r *git.Repository) string { return r.Dir() + ".journal" }

// closeOnAndOn closes the repository as often as it can, and reports whether anybody wrote in the meantime.
func closeOnAndOn(ctx context.Context, r *git.Repository) error {
	random := rand.New(rand.NewPCG(seed.Value(), 0))
	for {
		<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		open, err := r.Close(ctx)
		if errors.Is(err, git.ErrClosed) {
			continue
		} else if err != nil {
			return err
		}
		before, err := os.ReadFile(journal(r))
		if err != nil {
			return err
		}
		for range 10 {
			<-time.After(3 * time.Millisecond)
			if after, err := os.ReadFile(journal(r)); err != nil || len(after) != len(before) {
				return errors.Join(errors.New("somebody has written to a closed repository"), err)
			}
		}
		open()
		fmt.Fprintln(os.Stdout, "closed")
	}
}

// holdClosed closes the repository and keeps it closed.
func holdClosed(ctx context.Context, r *git.Repository) error {
	open, err := r.Close(ctx)
	if err != nil {
		return err
	}
	defer open() // the garbage collector would close unreferenced files, and so release their locks
	fmt.Fprintln(os.Stdout, "closed")
	<-time.After(time.Hour)
	return nil
}

// readRefs reads the refs once.
func readRefs(ctx context.Context, r *git.Repository) error {
	_, err := refs.Tips(ctx, r, "refs/")
	return err
}

// peer is a process of the forge.
type peer struct {
	*exec.Cmd
	// said counts the lines of its output, and failure is the last line about an error.
	said    atomic.Int32
	failure atomic.Pointer[string]
	ended   chan struct{}
}

// startProcess starts a process with a role in a repository and a git of the test.
func startProcess(t *testing.T, role string, r *git.Repository, binary, id string) *peer {
	t.Helper()
	g := NewWithT(t)
	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	p := &peer{Cmd: exec.CommandContext(t.Context(), executable), ended: make(chan struct{})}
	p.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+r.Dir(), binaryEnv+"="+binary, "FORGEPLANE_TEST_FENCE_ID="+id)
	// A pipe of os/exec would make Wait wait for git processes that outlive the process.
	read, write, err := os.Pipe()
	g.Expect(err).NotTo(HaveOccurred())
	p.Stdout = write
	g.Expect(p.Start()).To(Succeed())
	g.Expect(write.Close()).To(Succeed())
	go func() {
		defer close(p.ended)
		defer read.Close()
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "failed:") {
				p.failure.Store(&line)
			}
			p.said.Add(1)
		}
	}()
	t.Cleanup(func() { p.kill(); <-p.ended })
	return p
}

// kill kills the process.
func (p *peer) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// scribe returns a git that writes to the journal before it changes refs: a number of times, or until a file exists.
func scribe(t *testing.T, r *git.Repository, until string) (binary, id string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(journal(r), nil, 0o644)).To(Succeed())
	c := gittest.New(t, "sha1")
	id = c.Commit(t, "a", "1")
	c.Git(t, "push", "--quiet", r.Dir(), "main")
	input := filepath.Join(t.TempDir(), "input")
	// Git ends when its process is killed, but it can take its time. It reads its input first, because the process feeds it.
	return gittest.Script(t, `case "$*" in *update-ref*)
	trap '' TERM
	cat > "`+input+`.$$"; exec < "`+input+`.$$"
	n=0
	while [ $n -lt 8 ] || [ -n "`+until+`" ] && [ ! -e "`+until+`" ]; do
		n=$((n+1)); echo x >> "`+journal(r)+`"; sleep 0.005
	done;;
esac
exec git "$@"`), id
}

func TestGit_endsWhenItsProcessIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can signal the end of a parent")
	}
	g := NewWithT(t)
	r, _ := fenced(t)
	c := gittest.New(t, "sha1")
	id := c.Commit(t, "a", "1")
	c.Git(t, "push", "--quiet", r.Dir(), "main")
	begun, ended := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "ended")
	binary := gittest.Script(t, `case "$*" in *update-ref*)
	trap 'echo > "`+ended+`"; exit 143' TERM
	echo > "`+begun+`"
	while :; do sleep 0.01; done;;
esac
exec git "$@"`)
	p := startProcess(t, "write", r, binary, id)
	g.Eventually(begun).WithTimeout(patience.Wait).Should(BeAnExistingFile())
	p.kill()
	g.Eventually(ended).WithTimeout(patience.Wait).Should(BeAnExistingFile())
	patient, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open, err := r.Close(patient)
	g.Expect(err).NotTo(HaveOccurred())
	open()
}

func TestFence_waitsForAGitThatOutlivesItsProcess(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	release := filepath.Join(t.TempDir(), "release")
	binary, id := scribe(t, r, release)
	p := startProcess(t, "write", r, binary, id)
	g.Eventually(func() ([]byte, error) { return os.ReadFile(journal(r)) }).WithTimeout(patience.Wait).ShouldNot(BeEmpty())
	p.kill()

	impatient, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := r.Close(impatient)
	g.Expect(err).To(MatchError(context.DeadlineExceeded), "git may still write")
	g.Expect(os.WriteFile(release, nil, 0o644)).To(Succeed())
	patient, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open, err := r.Close(patient)
	g.Expect(err).NotTo(HaveOccurred())
	defer open()
	g.Expect(refs.Tips(t.Context(), r, "refs/heads/x")).To(Equal([]string{id}), "what was on its way is there")
}

func TestFence_opensIfTheClosingProcessIsKilled(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	p := startProcess(t, "hold", r, "git", "")
	g.Eventually(p.said.Load).WithTimeout(patience.Wait).Should(BeEquivalentTo(1))
	g.Expect(r.Closed()).To(BeTrue())
	_, _, err := r.BeginWrite(t.Context())
	g.Expect(err).To(MatchError(git.ErrClosed))
	g.Expect(r.Remove(t.Context())).To(MatchError(git.ErrClosed))
	g.Expect(r.Move(t.Context(), gittest.Repository(t, gittest.NewEngine(t), filepath.Dir(r.Dir()), "b.git"))).To(MatchError(git.ErrClosed))
	p.kill()
	g.Expect(r.Closed()).To(BeFalse())
	beginWrite(t, r)()
	closeFence(t, r)()
	g.Expect(r.Remove(t.Context())).To(Succeed())
}

func TestMove_waitsForGitOfAnotherProcess(t *testing.T) {
	type taken func(ctx context.Context, r, to *git.Repository) error
	for name, take := range map[string]taken{
		"moved":   func(ctx context.Context, r, to *git.Repository) error { return r.Move(ctx, to) },
		"removed": func(ctx context.Context, r, _ *git.Repository) error { return r.Remove(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, _ := fenced(t)
			to := gittest.Repository(t, gittest.NewEngine(t), filepath.Dir(r.Dir()), "b.git")
			release := filepath.Join(t.TempDir(), "release")
			binary, id := scribe(t, r, release)
			writer := startProcess(t, "write", r, binary, id)
			g.Eventually(func() ([]byte, error) { return os.ReadFile(journal(r)) }).WithTimeout(patience.Wait).ShouldNot(BeEmpty())

			impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			g.Expect(take(impatient, r, to)).To(MatchError(context.DeadlineExceeded))
			g.Expect(r.Check()).To(Succeed(), "it stays where it is")
			g.Expect(r.Closed()).To(BeFalse())

			done := make(chan error, 1)
			go func() { done <- take(t.Context(), r, to) }()
			g.Eventually(r.Closed).Should(BeTrue())
			g.Consistently(done).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "git still writes")
			g.Expect(r.Check()).To(Succeed())
			g.Expect(os.WriteFile(release, nil, 0o644)).To(Succeed())
			g.Eventually(done).WithTimeout(patience.Wait).Should(Receive(BeNil()))
			g.Expect(r.Check()).To(MatchError(git.ErrNotFound))
			g.Eventually(writer.ended).WithTimeout(patience.Wait).Should(BeClosed(), "its next write finds no repository")
			if name == "moved" {
				g.Expect(refs.Tips(t.Context(), to, "refs/heads/x")).To(Equal([]string{id}), "what was on its way is there")
				beginWrite(t, to)()
			}
		})
	}
}

func TestWrite_isRefusedOnceTheRepositoryHasMoved(t *testing.T) {
	g := NewWithT(t)
	one, other := fenced(t)
	first, err := other.PrepareWrite()
	g.Expect(err).NotTo(HaveOccurred())
	defer first.End()
	to := gittest.Repository(t, gittest.NewEngine(t), filepath.Dir(one.Dir()), "b.git")
	g.Expect(one.Move(t.Context(), to)).To(Succeed())
	g.Expect(first.Begin()).To(MatchError(git.ErrClosed))
	second, err := to.PrepareWrite()
	g.Expect(err).NotTo(HaveOccurred())
	defer second.End()
	g.Expect(to.Remove(t.Context())).To(Succeed())
	g.Expect(second.Begin()).To(MatchError(git.ErrClosed))
}

// Several processes write and close as often as they can, and are killed repeatedly.
func TestFence_holdsIfProcessesAreKilled(t *testing.T) {
	g := NewWithT(t)
	r, _ := fenced(t)
	binary, id := scribe(t, r, "")
	random := rand.New(rand.NewPCG(seed.Value(), 0))
	roles := []string{"write", "write", "write", "close", "close"}
	running := make([]*peer, len(roles))
	for i, role := range roles {
		running[i] = startProcess(t, role, r, binary, id)
	}
	for range 20 {
		i := random.IntN(len(roles))
		p := running[i]
		g.Eventually(p.said.Load).WithTimeout(patience.Wait).Should(BeNumerically(">=", 1), "it gets its turn")
		<-time.After(time.Duration(random.Int64N(int64(100 * time.Millisecond)))) // at a random point of its work
		p.kill()
		<-p.ended
		g.Expect(p.failure.Load()).To(BeNil())
		running[i] = startProcess(t, roles[i], r, binary, id)
	}
	for _, p := range running {
		p.kill()
		<-p.ended
		g.Expect(p.failure.Load()).To(BeNil())
	}
	patient, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open, err := r.Close(patient)
	g.Expect(err).NotTo(HaveOccurred(), "nobody is left")
	open()
	beginWrite(t, r)()
}
