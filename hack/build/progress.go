package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progressInterval is the time between two lines of progress. They are plain lines, which are the same in a log file and on a terminal.
const progressInterval = 5 * time.Second

// progress follows the progress of go build by its messages.
type progress struct {
	name     string
	output   io.Writer
	interval time.Duration
	begun    time.Time
	compiled map[string]bool
	modules  int
	expected map[string]bool // nil before they were counted
	told     bool            // whether a line was written
}

func newProgress(name string) *progress {
	return &progress{name: name, output: os.Stdout, interval: progressInterval, begun: time.Now(), compiled: map[string]bool{}}
}

// follow reads messages to their end, and occasionally reports the progress. Counting the remaining work takes seconds, so it runs in
// parallel with the build, and only if the build takes longer than one interval.
func (p *progress) follow(ctx context.Context, messages io.Reader, stale func(context.Context) []string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, counted := scan(messages), make(chan []string, 1)
	counting := false
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				cancel()
				if counting {
					<-counted
				}
				return
			}
			if !p.count(line) {
				fmt.Fprintln(os.Stderr, line)
			}
		case packages := <-counted:
			counting = false
			if packages != nil {
				p.expect(packages)
			}
		case <-ticker.C:
			// Once a package is compiled, all modules are available, so the list does not download any.
			if len(p.compiled) > 0 && p.expected == nil && !counting {
				counting = true
				go func() { counted <- stale(ctx) }()
			}
			p.told = true
			fmt.Fprintf(p.output, "%s: %s, %s\n", p.name, p, time.Since(p.begun).Round(time.Second))
		}
	}
}

// scan sends the lines of messages, and closes the channel at their end.
func scan(messages io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(messages)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// count records what a message reports, and returns whether it reports anything. All other messages are errors.
func (p *progress) count(line string) bool {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.modules++
	case strings.Contains(line, " "):
		return false
	case p.expected == nil || p.expected[line]:
		p.compiled[line] = true
	}
	return true
}

// expect sets the packages that had yet to be compiled a moment ago. Some of them are compiled by now.
func (p *progress) expect(packages []string) {
	p.expected = map[string]bool{}
	for _, path := range packages {
		p.expected[path] = true
	}
	for path := range p.compiled {
		p.expected[path] = true
	}
}

// String returns the progress.
func (p *progress) String() string {
	switch {
	case len(p.compiled) == 0:
		return fmt.Sprintf("reading, %d modules downloaded", p.modules)
	case p.expected == nil:
		return fmt.Sprintf("%d packages compiled", len(p.compiled))
	case len(p.compiled) < len(p.expected):
		return fmt.Sprintf("%d of %d packages compiled", len(p.compiled), len(p.expected))
	default:
		return "linking"
	}
}
