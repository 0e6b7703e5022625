package git

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// HalfMemory returns half of the memory that this process and its children may use, in whole MiB. That memory is the limit of their control
// groups, or the memory of the machine. HalfMemory returns 0 if it is not known.
func HalfMemory() int64 { return halfOf(os.DirFS("/")) }

func halfOf(root fs.FS) int64 {
	least := meminfo(read(root, "proc/meminfo"))
	for _, line := range strings.Split(read(root, "proc/self/cgroup"), "\n") {
		// A line has a number, controllers and a path. In version 2, the number is 0 and there are no controllers.
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, name := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			mount, name = mount+"/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		// The limit of a group applies to its subgroups. In a container, the path may not exist except for its root.
		for group := path.Join("/", parts[2]); ; group = path.Dir(group) {
			if n, err := strconv.ParseInt(strings.TrimSpace(read(root, path.Join(mount, group, name))), 10, 64); err == nil && n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least / 2 >> 20 << 20
}

// meminfo returns the memory of the machine, or 0 if it is not known.
func meminfo(text string) int64 {
	_, rest, _ := strings.Cut(text, "MemTotal:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, _ := strconv.ParseInt(fields[0], 10, 64)
	return kibibytes << 10
}

// read returns the content of a file, or "" if there is none.
func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(text)
}
