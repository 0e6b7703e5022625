package process

import (
	"bytes"
	"os"
	"path"
	"strconv"
)

// groups remembers the group of each process of the machine, so that a measurement reads only processes of the engine's groups.
type groups map[int]int

// measure adds the anonymous memory of each process to its group, in bytes. Pages of files do not count, because the kernel can reclaim
// them. A process that cannot be read counts as 0.
func (g *groups) measure(bytesOf map[int]int64) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	now := make(groups, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		group, known := (*g)[pid]
		if _, leads := bytesOf[pid]; leads {
			group = pid
		} else if !known {
			group = groupOf(name)
		}
		now[pid] = group
		if _, own := bytesOf[group]; own {
			bytesOf[group] += anonymous(name)
		}
	}
	*g = now
}

// followers returns the processes of a group except its leader.
func followers(group int) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != group && groupOf(name) == group {
			pids = append(pids, pid)
		}
	}
	return pids
}

// quarantineOf returns the directory to which a process writes the objects of a push, or "".
func quarantineOf(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if dir, ok := bytes.CutPrefix(variable, []byte("GIT_QUARANTINE_PATH=")); ok {
			return path.Base(string(dir))
		}
	}
	return ""
}

// groupOf returns the group of a process, or 0 if it has ended.
func groupOf(pid string) int {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	// The name of the program is in parentheses and can contain anything. State, parent and group follow.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 {
		return 0
	}
	group, _ := strconv.Atoi(string(fields[2]))
	return group
}

// anonymous returns the anonymous memory of a process in bytes.
func anonymous(pid string) int64 {
	text, _ := os.ReadFile("/proc/" + pid + "/statm")
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
