package git_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/forgeplane/forgeplane/internal/git"
)

func TestHalfMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const machine = "proc/meminfo"
	for name, tt := range map[string]struct {
		root fs.FS
		want int64
	}{
		"nothing is known": {fstest.MapFS{}, 0},
		"the machine":      {fstest.MapFS{machine: file("MemTotal:       24683840 kB\nMemFree: 1 kB\n")}, 12052 << 20},
		"version 2, in a container": {fstest.MapFS{
			machine: file("MemTotal: 24683840 kB\n"), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n"),
		}, 256 << 20},
		"version 2, without a limit": {fstest.MapFS{
			machine: file("MemTotal: 2048 kB\n"), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n"),
		}, 1 << 20},
		"version 2, of a group above": {fstest.MapFS{
			"proc/self/cgroup": file("0::/a.slice/b.service\n"), "sys/fs/cgroup/a.slice/b.service/memory.max": file("max\n"),
			"sys/fs/cgroup/a.slice/memory.max": file("4194304\n"),
		}, 2 << 20},
		"version 1, in a container": {fstest.MapFS{
			machine: file("MemTotal: 24683840 kB\n"), "proc/self/cgroup": file("5:cpu:/docker/1\n4:memory:/docker/1\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("1073741824\n"),
		}, 512 << 20},
		"version 1, without a limit": {fstest.MapFS{
			machine: file("MemTotal: 2048 kB\n"), "proc/self/cgroup": file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 1 << 20},
	} {
		if got := git.HalfOf(tt.root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
