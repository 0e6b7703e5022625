package process

import (
	"context"
	"fmt"
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
)

// Slots count requests, not what they use: a caller with many requests leaves the processors to callers with few.
func TestProcesses_areTheNicerTheMoreTheirCallerHas(t *testing.T) {
	dir := t.TempDir()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "git")
	text := fmt.Sprintf("#!/bin/sh\ncase $1 in version) exec %s version;; esac\necho $$ >\"$2.new\" && mv \"$2.new\" \"$2\"\nexec sleep 600\n", git)
	if err := os.WriteFile(binary, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	for about, total := range map[string]int64{"": 1 << 30, "without a limit of memory": 0} {
		t.Run(about, func(t *testing.T) {
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(time.Minute)
			p, err := New(t.Context(), Options{Binary: binary, Total: total})
			g.Expect(err).NotTo(HaveOccurred())
			own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
			g.Expect(err).NotTo(HaveOccurred())
			started := 0
			// niceness starts a process, and waits until it has the expected niceness.
			niceness := func(caller int64, c Command, want int) (end func()) {
				started++
				said := filepath.Join(t.TempDir(), strconv.Itoa(started))
				ctx, cancel := context.WithCancel(fair.With(t.Context(), fair.User(caller)))
				done := make(chan struct{})
				c.Args = append(c.Args, said)
				go func() { defer close(done); _ = p.Run(ctx, c) }()
				end = func() { cancel(); <-done }
				t.Cleanup(end)
				g.Eventually(func() (int, error) {
					text, err := os.ReadFile(said)
					if err != nil {
						return 0, err
					}
					pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
					if err != nil {
						return 0, err
					}
					has, err := syscall.Getpriority(syscall.PRIO_PROCESS, pid)
					return own - has, err
				}).Should(Equal(want), "process %d", started)
				return end
			}
			heavy, light := Command{Args: []string{"log"}}, Command{Args: []string{"cat-file"}}
			var ends []func()
			for _, want := range []int{0, 5, 10, 15, 19, 19} {
				ends = append(ends, niceness(1, heavy, want))
			}
			niceness(1, light, 0)
			niceness(2, light, 0)
			niceness(2, heavy, 0)
			niceness(2, Command{Args: []string{"gc"}, Nice: true}, 15)
			for _, end := range ends {
				end()
			}
			niceness(1, heavy, 0)
		})
	}
}
