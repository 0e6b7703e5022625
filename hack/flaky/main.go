// Command flaky reads what "go test -json" has reported of tests that could run again after a failure. It prints each test that failed
// and then passed, with the beginning of its failure.
//
// If the process of a package ends early, some of its tests have not run at all, and running the failed ones again does not show that. Such
// packages run again as a whole, with the given command.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// shown is the number of lines of a failure that are printed.
const shown = 40

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: flaky <file with the output of go test -json> <command that tests a package> [argument ...]")
		os.Exit(2)
	}
	again := func(name string) error {
		command := exec.CommandContext(context.Background(), os.Args[2], append(os.Args[3:], name)...)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		return command.Run()
	}
	if err := run(os.Stdout, os.Args[1], again); err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

// run prints the flaky tests of a file. again tests a package.
func run(w io.Writer, path string, again func(name string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the events of the tests: %w", err)
	}
	defer file.Close()
	all, early, err := read(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("reading the events of the tests in %s: %w", path, err)
	}
	for _, t := range all {
		if !t.failed || !t.passed || t.hasFailedPart(all) {
			continue
		}
		fmt.Fprintf(w, "FLAKY %s.%s: failed once, and passed when it ran again\n", t.Package, t.Test)
		for _, line := range t.failure() {
			fmt.Fprintf(w, "    %s", line)
		}
	}
	for _, name := range early {
		if failure := again(name); failure != nil {
			err = errors.Join(err, fmt.Errorf("the tests of %s ended early, and failed when they ran again: %w", name, failure))
			continue
		}
		fmt.Fprintf(w, "FLAKY %s: its tests ended early, and passed when they ran again\n", name)
	}
	return err
}

// name identifies a test. A part of a test has its name after that of the test and a slash.
type name struct{ Package, Test string }

// test has the results of a test.
type test struct {
	name
	// output are the lines up to the first failure.
	output                  []string
	running, failed, passed bool
}

// read returns the tests in the order in which they began, and the packages whose processes ended early.
func read(r io.Reader) (all []*test, early []string, err error) {
	found := map[name]*test{}
	for decoder := json.NewDecoder(r); ; {
		var e struct {
			name
			Action, Output string
		}
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return all, early, nil
		} else if err != nil {
			return nil, nil, err
		}
		if e.Test == "" {
			if e.Action == "fail" && endedEarly(all, e.Package) && !slices.Contains(early, e.Package) {
				early = append(early, e.Package)
			}
			continue
		}
		t := found[e.name]
		if t == nil {
			t = &test{name: e.name}
			found[e.name], all = t, append(all, t)
		}
		t.heed(e.Action, e.Output)
	}
}

func (t *test) heed(action, output string) {
	switch action {
	case "run":
		t.running = true
	case "output":
		if !t.failed {
			t.output = append(t.output, output)
		}
	case "fail":
		t.running, t.failed, t.passed = false, true, false
	case "pass", "skip":
		t.running, t.passed = false, true
	}
}

// endedEarly reports whether the process of a failed package ended before its tests did: a test was running, or no test has failed.
func endedEarly(all []*test, name string) bool {
	failed := false
	for _, t := range all {
		if t.Package != name {
			continue
		}
		if t.running {
			return true
		}
		failed = failed || t.failed
	}
	return !failed
}

func (t *test) hasFailedPart(all []*test) bool {
	return slices.ContainsFunc(all, func(o *test) bool {
		return o.failed && o.Package == t.Package && strings.HasPrefix(o.Test, t.Test+"/")
	})
}

// failure returns the beginning of the output, or of what Ginkgo says about the failure.
func (t *test) failure() []string {
	begin := slices.IndexFunc(t.output, func(line string) bool { return strings.Contains(line, "[FAILED]") })
	output := t.output[max(begin, 0):]
	return output[:min(len(output), shown)]
}
