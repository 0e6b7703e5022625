// Package usage measures the resources that a process uses. It reads /proc, and fails if there is none.
package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc, which Linux has fixed for its interfaces.
const tick = 10 * time.Millisecond

// Memory is what a process has in memory now, and what it had at most, both in bytes.
type Memory struct{ Resident, Peak int64 }

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return parseMemory(string(text))
}

func parseMemory(status string) (Memory, error) {
	var m Memory
	for _, field := range []struct {
		name  string
		value *int64
	}{{"VmRSS:", &m.Resident}, {"VmHWM:", &m.Peak}} {
		_, rest, _ := strings.Cut(status, field.name)
		words := strings.Fields(rest)
		if len(words) < 2 || words[1] != "kB" {
			return Memory{}, fmt.Errorf("reading the memory of a process: there is no %s in its status", field.name)
		}
		kibibytes, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("reading the memory of a process: %w", err)
		}
		*field.value = kibibytes << 10
	}
	return m, nil
}

// Children counts the processes that a process has started, directly or not, and that have not ended.
func Children(pid int) (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	parents := map[int]int{}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		} else if err != nil {
			return 0, fmt.Errorf("looking for the children of process %d: %w", pid, err)
		}
		var state string
		var parent int
		if _, err := fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent); err != nil {
			return 0, fmt.Errorf("looking for the children of process %d: %s: %w", pid, file, err)
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return 0, err
		}
		parents[child] = parent
	}
	number := 0
	for child := range parents {
		for p := parents[child]; p != 0; p = parents[p] {
			if p == pid {
				number++
				break
			}
		}
	}
	return number, nil
}

// CPUTime reads how long a process has computed, its children not included, to a hundredth of a second.
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return parseCPUTime(text)
}

func parseCPUTime(stat []byte) (time.Duration, error) {
	// The second field is the program's name in brackets, which may hold anything. Times are fields 14 and 15.
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(words) <= system {
		return 0, fmt.Errorf("reading the CPU time of a process: its stat is %q", stat)
	}
	var total time.Duration
	for _, word := range []string{words[user], words[system]} {
		ticks, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}

// Load returns the average number of runnable processes during the last minute; 0 if it is not known.
func Load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
