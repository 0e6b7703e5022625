package replicas

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/forgeplane/forgeplane/api/v1alpha1"
	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/test/process"
	"github.com/forgeplane/forgeplane/test/rest"
	"github.com/forgeplane/forgeplane/test/terminal"
)

// fenceEnv is set if this executable is the process that closes the repository at a path and keeps it closed.
const fenceEnv = "FORGEPLANE_TEST_FENCE"

func TestMain(m *testing.M) {
	path := os.Getenv(fenceEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stdout, "failed:", keepClosed(path))
	os.Exit(1)
}

// keepClosed closes a repository as long as this process lives.
func keepClosed(path string) error {
	repository, err := repositoryAt(path)
	if err != nil {
		return err
	}
	open, err := repository.Close(context.Background())
	if err != nil {
		return err
	}
	defer open() // without a reference, the garbage collector would close the repository object and release its locks
	fmt.Fprintln(os.Stdout, "closed")
	<-time.After(time.Hour)
	return nil
}

func repositoryAt(path string) (*git.Repository, error) {
	engine, err := git.NewEngine(context.Background(), git.Options{Binary: "git"})
	if err != nil {
		return nil, err
	}
	return engine.Repository(filepath.Dir(path), filepath.Base(path))
}

// closer is a process that closes a repository.
type closer struct{ *process.Process }

func startCloser(repository *git.Repository) closer {
	GinkgoHelper()
	executable, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	p, err := process.Start(process.Program{
		Name: "the process that closes a repository", Path: executable, Env: append(os.Environ(), fenceEnv+"="+repository.Dir()),
		Log: filepath.Join(admin.Space(), "closer.log"),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Stop)
	return closer{p}
}

func (c closer) expectClosed() {
	GinkgoHelper()
	Eventually(c.Tail).WithPolling(polling).Should(ContainSubstring("closed"))
}

// fenced is the project of the specs.
const fenced = `
apiVersion: forgeplane.dev/v1alpha1
kind: Project
metadata: {name: fenced, namespace: yard}
spec: {path: fenced, groupRef: {name: yard}, defaultBranch: main}
`

// visitor is a user of the project at one server.
type visitor struct {
	server *replica
	api    rest.Client
	clone  terminal.Terminal
}

func visit(server *replica) *visitor {
	GinkgoHelper()
	return &visitor{server: server, api: server.by("root"), clone: admin.As("dana", token("dana")).Clone(server.address() + "/yard/fenced.git")}
}

const (
	atFenced = " /projects/yard%2Ffenced/repository/"
	readOnly = "The repository is temporarily read-only. Please try again later."
)

// branch creates a branch over REST.
func (v *visitor) branch(name string) rest.Answer {
	GinkgoHelper()
	return v.api.Call("POST"+atFenced+"branches", fmt.Sprintf(`{"branch":%q,"ref":"main"}`, name))
}

// file creates a file on its own branch over REST.
func (v *visitor) file(name string) rest.Answer {
	GinkgoHelper()
	return v.api.Call("POST"+atFenced+"files/"+name, fmt.Sprintf(`{"branch":%q,"start_branch":"main","content":"Hello.\n","commit_message":"Begin"}`, name))
}

// push pushes a new commit to a branch.
func (v *visitor) push(branch string) (screen string, err error) {
	GinkgoHelper()
	v.clone.Commit(branch, "Hello.\n")
	return v.clone.Push(branch)
}

// expectReads expects that all reads work.
func (v *visitor) expectReads() {
	GinkgoHelper()
	v.clone.Git("fetch", "--quiet", "origin")
	admin.As("dana", token("dana")).Clone(v.server.address() + "/yard/fenced.git")
	for _, path := range []string{"tree", "branches", "commits", "files/README.md?ref=main"} {
		Expect(v.api.Status("GET"+atFenced+path)).To(Equal(http.StatusOK), path)
	}
}

// expectRefused expects that all changes are refused with the advice to try again later.
func (v *visitor) expectRefused(name string) {
	GinkgoHelper()
	v.clone.Commit(name, "Hello.\n")
	Expect(v.clone.RefusedPush(name)).To(ContainSubstring(readOnly))
	forbidden := And(HaveField("Status", http.StatusForbidden), HaveField("Body", ContainSubstring(readOnly)))
	Expect(v.branch(name)).To(forbidden)
	Expect(v.file(name)).To(forbidden)
}

// expectWrites expects that changes succeed, and that another visitor sees them at once.
func (v *visitor) expectWrites(name string, other *visitor) {
	GinkgoHelper()
	v.clone.MustPush(name + "-pushed")
	Expect(v.branch(name + "-made")).To(HaveField("Status", http.StatusCreated))
	Expect(v.file(name + "-file")).To(HaveField("Status", http.StatusCreated))
	for _, branch := range []string{"-pushed", "-made", "-file"} {
		Expect(other.api.Status("GET"+atFenced+"branches/"+name+branch)).To(Equal(http.StatusOK), branch)
	}
}

var _ = Describe("A repository that another process closes", Ordered, func() {
	var repository *git.Repository
	var first, second *visitor
	var hook *slowHook

	BeforeAll(func() {
		start(manager, one, two)
		one.stop()
		flags := one.options.Flags
		hook = newSlowHook(one)
		start(one)
		DeferCleanup(func() {
			one.stop()
			one.options.Flags = flags
		})
		admin.Apply(fenced)
		admin.WaitReady("project/fenced", "--namespace=yard")
		Expect(expect(one.by("root"), http.StatusCreated, "POST"+atFenced+"files/README.md", fileBody)).To(Succeed())
		var p v1alpha1.Project
		Expect(api.Get(context.Background(), client.ObjectKey{Namespace: "yard", Name: "fenced"}, &p)).To(Succeed())
		var err error
		repository, err = repositoryAt(filepath.Join(storage, p.Status.RepositoryPath))
		Expect(err).NotTo(HaveOccurred())
		first, second = visit(one), visit(two)
	})

	It("refuses changes and serves reads through every server, until that process is killed", func() {
		closer := startCloser(repository)
		closer.expectClosed()
		for name, v := range map[string]*visitor{"first": first, "second": second} {
			v.expectRefused(name)
			v.expectReads()
		}

		// Clients repeat a change until it succeeds.
		through := make(chan string, 4)
		ends := make(chan struct{})
		var waiting sync.WaitGroup
		DeferCleanup(func() { close(ends); waiting.Wait() })
		tried := make(chan struct{}, 1)
		again := func(what string, try func() bool) {
			waiting.Go(func() {
				defer GinkgoRecover()
				for !try() {
					select {
					case tried <- struct{}{}:
					default:
					}
					select {
					case <-time.After(polling):
					case <-ends:
						return
					}
				}
				through <- what
			})
		}
		for name, v := range map[string]*visitor{"first": first, "second": second} {
			again(name+" push", func() bool {
				screen, err := v.clone.Push("again-" + name)
				if err != nil {
					Expect(terminal.Readable(screen)).To(ContainSubstring(readOnly))
				}
				return err == nil
			})
			again(name+" branch", func() bool {
				a := v.branch("again-" + name + "-made")
				if a.Status != http.StatusCreated {
					Expect(a.Body).To(ContainSubstring(readOnly))
				}
				return a.Status == http.StatusCreated
			})
		}
		for range 8 {
			Eventually(tried).Should(Receive())
		}
		Expect(through).To(BeEmpty())
		Expect(closer.Done()).NotTo(BeClosed())
		Expect(closer.Kill()).To(Succeed())
		Expect(repository.Closed()).To(BeFalse(), "the kernel has given the lock up")
		var all []string
		for range 4 {
			var what string
			Eventually(through).Should(Receive(&what))
			all = append(all, what)
		}
		Expect(all).To(ConsistOf("first push", "first branch", "second push", "second branch"))
		first.expectWrites("one", second)
		second.expectWrites("two", first)
	})

	It("is closed when a running push in one server has ended, while the other server refuses new pushes", func() {
		pushed := hook.hold(first, "long")
		closer := startCloser(repository)
		Eventually(repository.Closed).WithPolling(polling).Should(BeTrue())
		second.expectRefused("late")
		first.expectReads()
		second.expectReads()
		Expect(second.api.Status("GET"+atFenced+"branches/long")).To(Equal(http.StatusNotFound), "it still runs")
		Consistently(closer.Tail).WithTimeout(quiet).WithPolling(polling).ShouldNot(ContainSubstring("closed"), "it is waited for")
		Expect(pushed).To(BeEmpty())

		hook.release()
		Eventually(pushed).Should(Receive(BeNil()), "it is carried through")
		closer.expectClosed()
		Expect(second.api.Status("GET" + atFenced + "branches/long")).To(Equal(http.StatusOK))
		first.expectRefused("later")
		Expect(closer.Stop()).To(Succeed())
		first.expectWrites("opened", second)
	})

	It("is open again if a running push takes longer than the process waits", func() {
		pushed := hook.hold(first, "longer")
		patience, cancel := context.WithTimeout(context.Background(), quiet)
		defer cancel()
		_, err := repository.Close(patience)
		Expect(err).To(MatchError(And(HavePrefix("waiting for the writes of "+repository.Dir()), ContainSubstring("deadline exceeded"))))
		Expect(err).To(MatchError(context.DeadlineExceeded))
		second.expectWrites("meanwhile", first)
		hook.release()
		Eventually(pushed).Should(Receive(BeNil()))
	})
})

// slowHook is a Git hook that can stop a push that is accepted but has changed nothing yet.
type slowHook struct {
	// pipe exists if the next push must stop, and writing to it lets the push continue. stopped exists while a push is stopped.
	pipe, stopped string
}

// newSlowHook configures a server, which is not running, to use the hook.
func newSlowHook(server *replica) *slowHook {
	GinkgoHelper()
	directory := admin.Space()
	h := &slowHook{pipe: filepath.Join(directory, "pipe"), stopped: filepath.Join(directory, "stopped")}
	// The name of the program selects the hook.
	program := filepath.Join(directory, "pre-receive")
	Expect(os.Symlink(checkout.Program("forgeplane-hook"), program)).To(Succeed())
	script := filepath.Join(directory, "hook")
	Expect(os.WriteFile(script, fmt.Appendf(nil, `#!/bin/sh
'%s' "$@" || exit
[ ! -p '%s' ] || { : >'%s'; read -r line <'%[2]s'; rm -f '%[3]s'; }
`, program, h.pipe, h.stopped), 0o700)).To(Succeed()) //nolint:gosec // git executes it
	server.options.Flags = append(slices.Clip(server.options.Flags), "--hook-binary="+script)
	return h
}

// hold starts a push, and returns when the push has stopped in the hook. The channel receives the result of the push.
func (h *slowHook) hold(v *visitor, branch string) <-chan error {
	GinkgoHelper()
	Expect(syscall.Mkfifo(h.pipe, 0o600)).To(Succeed())
	DeferCleanup(h.release)
	pushed := make(chan error, 1)
	go func() {
		defer GinkgoRecover()
		screen, err := v.push(branch)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, screen)
		}
		pushed <- err
	}()
	Eventually(h.stopped).WithPolling(polling).Should(BeAnExistingFile())
	return pushed
}

// release lets a stopped push continue.
func (h *slowHook) release() {
	GinkgoHelper()
	pipe, err := os.OpenFile(h.pipe, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	defer pipe.Close()
	_, err = pipe.WriteString("go on\n")
	Expect(err).NotTo(HaveOccurred())
	// The text would be lost if no process had the pipe open.
	Eventually(h.stopped).WithPolling(polling).ShouldNot(BeAnExistingFile())
	Expect(os.Remove(h.pipe)).To(Succeed())
}
