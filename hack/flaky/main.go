// Command flaky reads what "go test -json" has reported of tests that could run again after a failure. It prints each test that failed
// and then passed, with the beginning of its failure. It fails if a test did not end, or if a package failed without a failed test: then
// tests are missing that did not run at all.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// shown is the number of lines of a failure that are printed.
const shown = 40

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: flaky <file with the output of go test -json>")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the events of the tests: %w", err)
	}
	defer file.Close()
	all, broken, err := read(bufio.NewReader(file))
	if err != nil {
		return fmt.Errorf("reading the events of the tests in %s: %w", path, err)
	}
	for _, t := range all {
		if !t.failed && !t.passed {
			err = errors.Join(err, fmt.Errorf("%s.%s did not end", t.Package, t.Test))
		}
		if !t.failed || !t.passed || t.hasFailedPart(all) {
			continue
		}
		fmt.Fprintf(w, "FLAKY %s.%s: failed once, and passed when it ran again\n", t.Package, t.Test)
		for _, line := range t.failure() {
			fmt.Fprintf(w, "    %s", line)
		}
	}
	for _, name := range broken {
		if !slices.ContainsFunc(all, func(t *test) bool { return t.failed && t.Package == name }) {
			err = errors.Join(err, fmt.Errorf("%s failed, but none of its tests did", name))
		}
	}
	return err
}

// name identifies a test. A part of a test has its name after that of the test and a slash.
type name struct{ Package, Test string }

// test is what happened to a test.
type test struct {
	name
	// output are the lines up to the first failure.
	output         []string
	failed, passed bool
}

// read returns the tests in the order in which they began, and the packages that failed.
func read(r io.Reader) (all []*test, broken []string, err error) {
	found := map[name]*test{}
	for decoder := json.NewDecoder(r); ; {
		var e struct {
			name
			Action, Output string
		}
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return all, broken, nil
		} else if err != nil {
			return nil, nil, err
		}
		if e.Test == "" {
			if e.Action == "fail" {
				broken = append(broken, e.Package)
			}
			continue
		}
		t := found[e.name]
		if t == nil {
			t = &test{name: e.name}
			found[e.name], all = t, append(all, t)
		}
		switch {
		case e.Action == "output" && !t.failed:
			t.output = append(t.output, e.Output)
		case e.Action == "fail":
			t.failed, t.passed = true, false
		case e.Action == "pass", e.Action == "skip":
			t.passed = true
		}
	}
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
