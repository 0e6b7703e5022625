package git

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// HalfMemory is half of the memory that this process and those that it starts may have, in whole MiB: of what its control groups allow,
// or of what the machine has. It is 0 where that is not known.
func HalfMemory() int64 { return halfOf(os.DirFS("/")) }

func halfOf(root fs.FS) int64 {
	least := meminfo(read(root, "proc/meminfo"))
	for _, line := range strings.Split(read(root, "proc/self/cgroup"), "\n") {
		// A line is a number, controllers and a path. Version 2 has the number 0 and no controllers.
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
		// What holds for a group holds for those in it. In a container the path may be one that is not seen there, but for its root.
		for group := path.Join("/", parts[2]); ; group = path.Dir(group) {
			if n, err := strconv.ParseInt(strings.TrimSpace(read(root, path.Join(mount, group, name))), 10, 64); err == nil && n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least / 2 / mebibyte * mebibyte
}

// meminfo is the memory of the machine; 0 if it is not known.
func meminfo(text string) int64 {
	_, rest, _ := strings.Cut(text, "MemTotal:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kibibytes, _ := strconv.ParseInt(fields[0], 10, 64)
	return kibibytes << 10
}

// read returns the content of a file, or "" where there is none.
func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(text)
}
