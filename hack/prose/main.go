// Command prose checks the English of the project: docs, descriptions of the API, comments, messages and test names. It reports phrases that
// are hard to read, and says what to write instead. The rules are in rules.go.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	count := flag.Bool("count", false, "print the number of findings in each area, and do not fail")
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "Usage: go run ./hack/prose [flags] [path...]\n\n"+
			"Checks the English of the files of the checkout, or of those below the given paths.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	failed, err := run(os.Stdout, ".", flag.Args(), *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// run checks the files of a checkout and prints its findings, or with count only their numbers. It reports whether "make lint" must fail.
func run(w io.Writer, root string, below []string, count bool) (failed bool, err error) {
	files, err := tracked(root, below)
	if err != nil {
		return false, err
	}
	result, err := checkAll(root, files)
	if err != nil {
		return false, err
	}
	if count {
		printCounts(w, result)
		return false, nil
	}
	if len(below) == 0 {
		failed = tolerate(w, &result)
	}
	for _, f := range result.findings {
		fmt.Fprintf(w, "%s:%d: %q: %s\n", f.file, f.line, f.phrase, f.instead)
	}
	found := len(result.findings)
	if found > 0 {
		fmt.Fprintf(w, "prose: %d phrases to rewrite; the rules are in hack/prose/rules.go\n", found)
	}
	return failed || found > 0, nil
}

// tolerate removes the findings of gradual rules in areas that are not above their ceilings. It reports whether a ceiling must be lowered.
func tolerate(w io.Writer, o *outcome) (lower bool) {
	count := map[area]int{}
	for _, f := range o.findings {
		if f.gradual {
			count[f.area]++
		}
	}
	for _, a := range areas {
		switch n, ceiling := count[a], ceilings[a]; {
		case n > ceiling:
			fmt.Fprintf(w, "prose: %d phrases of gradual rules in %s, and at most %d are allowed: rewrite some of these\n", n, a, ceiling)
		case n+slack(ceiling) < ceiling:
			lower = true
			fmt.Fprintf(w, "prose: %d phrases of gradual rules in %s: lower the ceiling of %d in hack/prose/rules.go\n", n, a, ceiling)
		}
	}
	o.findings = slices.DeleteFunc(o.findings, func(f finding) bool { return f.gradual && count[f.area] <= ceilings[f.area] })
	return lower
}

// tracked returns the files of a checkout that Git tracks or would track, relative to its root.
func tracked(root string, below []string) ([]string, error) {
	command := exec.Command("git", append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, below...)...) //nolint:noctx // short
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of the checkout: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(files)
	return slices.Compact(files), nil
}

// outcome is the result of checking any number of files.
type outcome struct {
	findings []finding
	// lines is the number of lines with prose, by area.
	lines map[area]int
}

// checkAll checks files, on all processors.
func checkAll(root string, files []string) (outcome, error) {
	each := make([]outcome, len(files))
	errs := make([]error, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				each[i], errs[i] = checkFile(root, files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	workers.Wait()

	total := outcome{lines: map[area]int{}}
	for i := range each {
		if errs[i] != nil {
			return outcome{}, errs[i]
		}
		total.findings = append(total.findings, each[i].findings...)
		for a, n := range each[i].lines {
			total.lines[a] += n
		}
	}
	return total, nil
}

// checkFile checks one file. A file that was removed from the working tree has no findings.
func checkFile(root, file string) (outcome, error) {
	read := reader(file)
	if read == nil {
		return outcome{}, nil
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if os.IsNotExist(err) {
		return outcome{}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	passages, err := read(file, text)
	if err != nil {
		return outcome{}, fmt.Errorf("reading %s: %w", file, err)
	}
	result := outcome{lines: map[area]int{}}
	for _, p := range passages {
		result.lines[p.area] += p.lines()
		for _, f := range check(p) {
			f.file = file
			result.findings = append(result.findings, f)
		}
	}
	slices.SortStableFunc(result.findings, func(a, b finding) int { return a.line - b.line })
	return result, nil
}

// printCounts prints a line for each area: findings, lines with a finding, lines of prose.
func printCounts(w io.Writer, o outcome) {
	fmt.Fprintf(w, "%-14s %8s %8s %8s\n", "area", "phrases", "lines", "of")
	for _, a := range areas {
		phrases, lines := 0, map[string]bool{}
		for _, f := range o.findings {
			if f.area == a {
				phrases++
				lines[fmt.Sprintf("%s:%d", f.file, f.line)] = true
			}
		}
		fmt.Fprintf(w, "%-14s %8d %8d %8d\n", a, phrases, len(lines), o.lines[a])
	}
}
