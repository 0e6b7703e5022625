package repository_test

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/forgeplane/forgeplane/internal/repository"
)

// withoutLinks runs a function for which no file system has hard links: the kernel answers as vfat does. It skips the test where the kernel
// does not take filters of system calls.
func withoutLinks(t *testing.T, run func()) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_LINKAT},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked, so the thread with the filter ends with the goroutine
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		if err == nil {
			run()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("SKIPPED: the kernel does not take filters of system calls: %v", err)
	}
}

func TestMark_needsNoHardLinks(t *testing.T) {
	g := NewWithT(t)
	one := shardAt(t.TempDir(), "one", "1")
	var linked, marked error
	withoutLinks(t, func() {
		linked = os.Link("/proc/self/exe", one.Spec.Path+"/link")
		marked = repository.Mark(one, false)
	})
	g.Expect(linked).To(MatchError(unix.EPERM))
	g.Expect(marked).To(Succeed())
	g.Expect(repository.CheckMarker(one)).To(Succeed())
	g.Expect(os.ReadDir(one.Spec.Path)).To(HaveLen(1), "nothing else is left")
}
