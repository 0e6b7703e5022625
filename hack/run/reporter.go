package main

import (
	"fmt"
	"io"
	"time"
)

// reporter prints what happens, and the time since the start.
type reporter struct {
	output io.Writer
	begun  time.Time
}

func newReporter(output io.Writer) *reporter { return &reporter{output: output, begun: time.Now()} }

func (r *reporter) say(format string, args ...any) {
	fmt.Fprintf(r.output, "%6.1f s  %s\n", r.elapsed().Seconds(), fmt.Sprintf(format, args...))
}

func (r *reporter) write(text string) { fmt.Fprint(r.output, text) }

func (r *reporter) elapsed() time.Duration { return time.Since(r.begun) }
