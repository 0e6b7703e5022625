// Package soak has the size of tests that are random or long: "make test" runs a small part of them, and "make soak" all.
package soak

import (
	"os"
	"runtime"
	"testing"
)

// Variable names the environment variable that "make soak" sets.
const Variable = "FORGEPLANE_SOAK"

// Running reports whether "make soak" runs the tests.
func Running() bool { return os.Getenv(Variable) != "" }

// Times returns the first number in "make test", and the second in "make soak".
func Times[N int | int8 | uint64](test, soak N) N {
	if Running() {
		return soak
	}
	return test
}

// Allocated calls do, and returns the number of bytes that the process has allocated meanwhile. It returns 0 in "make test", where other tests
// could allocate them.
func Allocated(do func()) uint64 {
	if !Running() {
		do()
		return 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before) //nolint:forbidigo // only "make soak" measures
	do()
	runtime.ReadMemStats(&after) //nolint:forbidigo // only "make soak" measures
	return after.TotalAlloc - before.TotalAlloc
}

// Only skips a test unless "make soak" runs it.
func Only(t testing.TB) {
	t.Helper()
	if !Running() {
		t.Skip("make soak runs this test")
	}
}
