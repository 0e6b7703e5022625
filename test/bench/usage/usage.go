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

// tick is the unit of the times in /proc, which is constant in Linux.
const tick = 10 * time.Millisecond

// Memory is the current memory of a process and its maximum, both in bytes.
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

// Children counts the running processes that a process has started, directly or indirectly.
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

// CPUTime returns the CPU time of a process without its children, to a hundredth of a second.
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return parseCPUTime(text)
}

// TotalCPUTime returns the CPU time of a process and of its children that have ended, to a hundredth of a second.
func TotalCPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d and its children: %w", pid, err)
	}
	own, err := parseCPUTime(text)
	if err != nil {
		return 0, err
	}
	children, err := parseTimes(text, 16)
	return own + children, err
}

// ResetPeak makes the current memory of a process its maximum.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the maximum memory of process %d: %w", pid, err)
	}
	return nil
}

func parseCPUTime(stat []byte) (time.Duration, error) { return parseTimes(stat, 14) }

// parseTimes adds the time in user mode in a field, and the time in system mode in the next one. The number of the first field is 1.
func parseTimes(stat []byte, field int) (time.Duration, error) {
	// The second field is the program's name in parentheses, which can contain any characters.
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, system := field-3, field-2
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

// Load returns the average number of runnable processes during the last minute, or 0 if it is not known.
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
