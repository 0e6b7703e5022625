package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progressInterval is the time between two lines of progress: plain lines, which a log file keeps as a terminal shows them.
const progressInterval = 5 * time.Second

// progress tells from the go command's messages how far it is.
type progress struct {
	begun    time.Time
	rest     string
	packages map[string]bool
	done     int
	modules  int
}

// newProgress expects the given packages to be compiled; rest is what it calls all that is not counted.
func newProgress(begun time.Time, rest string, packages ...string) *progress {
	p := &progress{begun: begun, rest: rest, packages: make(map[string]bool, len(packages))}
	for _, path := range packages {
		p.packages[path] = true
	}
	return p
}

// follow reads messages to their end. What is neither a package nor a download is passed on: it is what went wrong.
func (p *progress) follow(messages io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(messages)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return
			}
			if !p.count(line) {
				fmt.Fprintln(os.Stderr, line)
			}
		case <-ticker.C:
			fmt.Printf("control plane: %s, %s\n", p, time.Since(p.begun).Round(time.Second))
		}
	}
}

// count notes what a message reports as done, and says whether it reports anything.
func (p *progress) count(line string) bool {
	switch {
	case p.packages[line]:
		p.done++
	case strings.HasPrefix(line, "go: downloading "):
		p.modules++
	default:
		// A line without a space is a package that was not expected: a program's own, or one that was cached and is not now.
		return !strings.Contains(line, " ")
	}
	return true
}

// String is how far it is.
func (p *progress) String() string {
	switch {
	case p.done < len(p.packages):
		return fmt.Sprintf("%d of %d packages compiled", p.done, len(p.packages))
	case p.modules > 0:
		return fmt.Sprintf("%s, %d modules downloaded", p.rest, p.modules)
	default:
		return p.rest
	}
}
