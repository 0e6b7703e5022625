package installation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Processes returns the running processes that belong to the checkout, each as a line of text: processes with a program, arguments or a working
// directory in the checkout, and their descendants. It skips the spec if the operating system does not provide this information.
func (c *Checkout) Processes() []string {
	GinkgoHelper()
	if runtime.GOOS != "linux" {
		Skip("only Linux tells in /proc what runs")
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())
	parents := map[int]int{}
	related := map[int]bool{}
	var pids []int
	for _, directory := range all {
		pid, err := strconv.Atoi(filepath.Base(directory))
		Expect(err).NotTo(HaveOccurred())
		if pid == os.Getpid() {
			continue
		}
		pids = append(pids, pid)
		parents[pid] = parent(directory)
		related[pid] = c.mentions(directory)
	}
	var lines []string
	for _, pid := range pids {
		for ancestor := pid; ancestor != 0; ancestor = parents[ancestor] {
			if related[ancestor] {
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				lines = append(lines, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
				break
			}
		}
	}
	return lines
}

// PID returns the process id of the only process of the checkout with certain words in its command line.
func (c *Checkout) PID(words string) (pid int) {
	GinkgoHelper()
	processes := c.Processes()
	index := slices.IndexFunc(processes, func(line string) bool { return strings.Contains(line, words) })
	Expect(index).To(BeNumerically(">=", 0), "no %q among %q", words, processes)
	_, err := fmt.Sscan(processes[index], &pid)
	Expect(err).NotTo(HaveOccurred())
	return pid
}

// mentions reports whether a process, given by its directory in /proc, has the checkout in its program, arguments or working directory. It
// reports false for a process that ends meanwhile.
func (c *Checkout) mentions(directory string) bool {
	for _, link := range []string{"cwd", "exe"} {
		if target, err := os.Readlink(filepath.Join(directory, link)); err == nil && strings.HasPrefix(target, c.Dir) {
			return true
		}
	}
	command, err := os.ReadFile(filepath.Join(directory, "cmdline"))
	return err == nil && bytes.Contains(command, []byte(c.Dir))
}

// parent returns the process id of the parent, or 0 for a process that has ended or is about to end.
func parent(directory string) int {
	stat, err := os.ReadFile(filepath.Join(directory, "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, can contain any characters.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if fields[0] == "Z" {
		return 0
	}
	pid, _ := strconv.Atoi(fields[1])
	return pid
}
