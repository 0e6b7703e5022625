package usage

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestMemoryIsReadFromTheStatusOfAProcess(t *testing.T) {
	g := NewWithT(t)
	m, err := parseMemory("Name:\tforge\nVmPeak:\t 1265460 kB\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nThreads:\t9\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(Equal(Memory{Resident: 200 << 10, Peak: 300 << 10}))
	_, err = parseMemory("Name:\tzombie\nThreads:\t1\n")
	g.Expect(err).To(HaveOccurred())
}

func TestCPUTimeIsThatOfUserAndSystemWhateverTheProgramIsCalled(t *testing.T) {
	g := NewWithT(t)
	cpu, err := parseCPUTime([]byte("42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 7 8 20 0 9 0 1000 0 0\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cpu).To(Equal(1750 * time.Millisecond))
	_, err = parseCPUTime([]byte("42 (a) S 1\n"))
	g.Expect(err).To(HaveOccurred())
}

func TestAProcessReadsItsOwnUsage(t *testing.T) {
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

func TestChildrenAreCountedUntilTheyEnd(t *testing.T) {
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
	g.Eventually(children).WithTimeout(10 * time.Second).Should(Equal(before + 2))
	g.Expect(stdin.Close()).To(Succeed())
	_ = shell.Wait() // how it ends is of no interest
	g.Expect(children()).To(Equal(before))
}
