//go:build !linux

package process

// groups is implemented only on Linux.
type groups struct{}

// measure does nothing: each process counts with its assumed memory.
func (*groups) measure(map[int]int64) {}

// followers returns none.
func followers(int) []int { return nil }

// quarantineOf returns "".
func quarantineOf(int) string { return "" }
