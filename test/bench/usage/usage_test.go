package usage

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/test/patience"
)

func TestParseMemory_readsTheStatusOfAProcess(t *testing.T) {
	g := NewWithT(t)
	m, err := parseMemory("Name:\tforge\nVmPeak:\t 1265460 kB\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nThreads:\t9\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(Equal(Memory{Resident: 200 << 10, Peak: 300 << 10}))
	_, err = parseMemory("Name:\tzombie\nThreads:\t1\n")
	g.Expect(err).To(HaveOccurred())
}

func TestParseCPUTime_addsUserAndSystemTime(t *testing.T) {
	g := NewWithT(t)
	cpu, err := parseCPUTime([]byte("42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 7 8 20 0 9 0 1000 0 0\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cpu).To(Equal(1750 * time.Millisecond))
	_, err = parseCPUTime([]byte("42 (a) S 1\n"))
	g.Expect(err).To(HaveOccurred())
}

func TestTotalCPUTime_includesChildrenThatHaveEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	g := NewWithT(t)
	g.Expect(parseTimes([]byte("42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 7 8 20 0 9 0 1000 0 0\n"), 16)).To(Equal(150 * time.Millisecond))
	before, err := TotalCPUTime(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done").Run()).To(Succeed())
	after, err := TotalCPUTime(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after - before).To(BeNumerically(">", 2*tick))
}

func TestResetPeak_forgetsTheMaximum(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	g := NewWithT(t)
	g.Expect(ResetPeak(os.Getpid())).To(Succeed())
	m, err := MemoryOf(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Peak).To(BeNumerically("<", m.Resident+16<<20))
}

func TestUsage_isReadableForTheProcessItself(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	g := NewWithT(t)
	m, err := MemoryOf(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.Resident).To(BeNumerically(">", 1<<20))
	g.Expect(m.Peak).To(BeNumerically(">=", m.Resident))
	_, err = CPUTime(os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
}

func TestChildren_areCountedUntilTheyEnd(t *testing.T) {
	g := NewWithT(t)
	children := func() int {
		number, err := Children(os.Getpid())
		g.Expect(err).NotTo(HaveOccurred())
		return number
	}
	before := children()
	// The shell has a child of its own.
	shell := exec.CommandContext(t.Context(), "sh", "-c", "sleep 60 & read line; kill $!; wait")
	stdin, err := shell.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(shell.Start()).To(Succeed())
	g.Eventually(children).WithTimeout(patience.Wait).Should(Equal(before + 2))
	g.Expect(stdin.Close()).To(Succeed())
	_ = shell.Wait() // the exit code does not matter
	g.Expect(children()).To(Equal(before))
}
