package job_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/database"
	"github.com/forgeplane/forgeplane/internal/database/databasetest"
	"github.com/forgeplane/forgeplane/internal/fair"
	"github.com/forgeplane/forgeplane/internal/job"
	"github.com/forgeplane/forgeplane/test/patience"
	"github.com/forgeplane/forgeplane/test/seed"
)

// roleEnv is set if this executable runs as another process of the forge: its value says how to run the tasks of the database in
// databaseEnv. The process writes notes to the directory in notesEnv.
const roleEnv, databaseEnv, notesEnv = "FORGEPLANE_TEST_QUEUE", "FORGEPLANE_TEST_QUEUE_DATABASE", "FORGEPLANE_TEST_QUEUE_NOTES"

// crashLease is the time after which other processes run the tasks of a killed process. A process must not pause for that long.
const crashLease = 10 * time.Second

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		// The tests that run in parallel wait, so that more of them fit than the machine has processors.
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	if err := serve(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs tasks until SIGTERM.
func serve(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, err := database.Open(ctx, os.Getenv(databaseEnv), job.Migrations())
	if err != nil {
		return err
	}
	run := map[string]func(context.Context, job.Attempt, func(string)) error{"hold": hold, "note": note}[role]
	err = job.NewQueue(db, job.QueueOptions{
		Name: "tests", Limits: fair.Limits{Total: 4, Share: 3}, Run: run, Lease: crashLease, Poll: 20 * time.Millisecond,
		Retry: func(int, error) time.Duration { return time.Millisecond },
	}).Start(ctx)
	return errors.Join(err, db.Close())
}

// hold runs a task that never ends.
func hold(ctx context.Context, _ job.Attempt, progress func(string)) error {
	progress("half of it")
	fmt.Fprintln(os.Stdout, "began")
	<-ctx.Done()
	return ctx.Err()
}

// note runs a task for a moment, and records what it was told. It also records if the task runs twice at once: the kernel releases the lock
// of a killed process.
func note(ctx context.Context, a job.Attempt, _ func(string)) error {
	f, err := os.OpenFile(filepath.Join(os.Getenv(notesEnv), a.Key), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_, err = fmt.Fprintln(f, "twice at once")
		return err
	}
	fmt.Fprintln(f, string(a.Payload))
	fmt.Fprintln(os.Stdout, "ran")
	random := rand.New(rand.NewPCG(seed.Value(), uint64(a.Number)))
	select {
	case <-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond)))):
	case <-ctx.Done():
		return ctx.Err()
	}
	if random.IntN(5) == 0 {
		return errors.New("failure")
	}
	return nil
}

// process runs tasks in a separate process.
type process struct {
	*exec.Cmd
	// said counts the lines of its output.
	said  atomic.Int32
	ended chan struct{}
}

func startProcess(t *testing.T, role, name, notes string) *process {
	t.Helper()
	g := NewWithT(t)
	executable, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	p := &process{Cmd: exec.CommandContext(t.Context(), executable), ended: make(chan struct{})}
	p.Env = append(os.Environ(), roleEnv+"="+role, databaseEnv+"="+name, notesEnv+"="+notes)
	p.Stderr = os.Stderr
	output, err := p.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Start()).To(Succeed())
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			p.said.Add(1)
		}
		_ = p.Wait()
	}()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

// end sends a signal to the process and waits for its end.
func (p *process) end(how syscall.Signal) {
	_ = p.Process.Signal(how)
	<-p.ended
}

func TestQueue_takesOverFromKilledProcess(t *testing.T) {
	t.Parallel() // it waits for leases
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel()
		g, db := NewWithT(t), databasetest.SQL(t, name)
		w := newWorker(t, name, job.QueueOptions{})
		w.stop()
		add(t, w.queue, "a", "", acme)
		p := startProcess(t, "hold", name, "")
		g.Eventually(p.said.Load).WithTimeout(patience.Wait).Should(BeEquivalentTo(1))
		g.Eventually(w.queue.Look).WithArguments(t.Context(), "a").WithTimeout(patience.Wait).Should(HaveField("Progress", "half of it"))
		p.end(syscall.SIGKILL)
		end := leaseEnd(t, db)
		w = newWorker(t, name, job.QueueOptions{Lease: time.Hour})
		g.Expect(w.next(g)).To(And(HaveField("Failed", 1), HaveField("Progress", "half of it")))
		g.Expect(leaseEnd(t, db)-time.Hour.Milliseconds()).To(BeNumerically(">=", end), "not before the lease was over")
		w.end <- nil
		inQueue(t, w.queue, "a", job.Idle)
	})
}

func TestQueue_releasesTasksOfStoppedProcess(t *testing.T) {
	t.Parallel() // it waits for processes
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		g, w := NewWithT(t), newWorker(t, name, job.QueueOptions{})
		w.stop()
		add(t, w.queue, "a", "", acme)
		p := startProcess(t, "hold", name, "")
		g.Eventually(p.said.Load).WithTimeout(patience.Wait).Should(BeEquivalentTo(1))
		p.end(syscall.SIGTERM)
		g.Expect(p.ProcessState.ExitCode()).To(BeZero())
		g.Expect(w.queue.Look(t.Context(), "a")).To(Equal(job.State{Phase: job.Waiting, Progress: "half of it"}))
	})
}

// Several processes run tasks, fail, and are repeatedly stopped and killed while tasks are added. Each key must run after it was last added,
// and never twice at once.
func TestQueue_runsAllTasksDespiteKilledProcesses(t *testing.T) {
	t.Parallel() // it waits for processes
	databasetest.OnEachEngine(t, func(t *testing.T, name string) {
		t.Parallel()
		const keys, processes, rounds, addsOfARound = 12, 3, 12, 40
		g, notes := NewWithT(t), t.TempDir()
		q := job.NewQueue(databasetest.Open(t, name, job.Migrations()), job.QueueOptions{Name: "tests"})
		random := rand.New(rand.NewPCG(seed.Value(), 0))
		running := make([]*process, processes)
		for i := range running {
			running[i] = startProcess(t, "note", name, notes)
		}
		adds, last := 0, map[string]string{}
		addAny := func() {
			adds++
			key, payload := fmt.Sprint("key", random.IntN(keys)), fmt.Sprint("add ", adds)
			add(t, q, key, payload, fair.Namespace(fmt.Sprint(random.IntN(3))))
			last[key] = payload
		}
		for range rounds {
			for range addsOfARound {
				addAny()
			}
			i := random.IntN(processes)
			g.Eventually(func() int32 { addAny(); return running[i].said.Load() }).WithTimeout(patience.Wait).Should(BeNumerically(">=", 1), "it gets its turn")
			running[i].end([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[random.IntN(2)])
			running[i] = startProcess(t, "note", name, notes)
		}
		for key, payload := range last {
			g.Eventually(q.Look).WithArguments(t.Context(), key).WithTimeout(patience.Wait).WithPolling(20 * time.Millisecond).Should(BeZero())
			text, err := os.ReadFile(filepath.Join(notes, key))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).NotTo(ContainSubstring("twice at once"))
			g.Expect(string(text)).To(HaveSuffix(payload+"\n"), key)
		}
	})
}
