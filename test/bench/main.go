// Command bench measures the performance that Forgeplane promises, and compares it with references: see docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/forgeplane/forgeplane/test/bench/hostile"
	"github.com/forgeplane/forgeplane/test/bench/reference"
)

func main() {
	if status, called := reference.Main(os.Args); called {
		os.Exit(status)
	}
	if status, called := hostile.Main(os.Args); called {
		os.Exit(status)
	}
	os.Exit(command())
}

// command is main with an exit status, which is 1 if a row is not within its bound or was not measured.
func command() int {
	s, err := parseSettings(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 2
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	defer stop()
	passed, err := run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !passed {
		return 1
	}
	return 0
}

// settings are the choices of the caller.
type settings struct {
	checkout string // absolute
	json     string
	rows     *regexp.Regexp
	list     bool
}

func parseSettings(args []string, messages io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprint(messages, "Usage: make bench [ROWS=expression], or: go run ./test/bench [flags]\n\n"+
			"Measures Forgeplane on this machine. The first start from a fresh clone takes minutes; ROWS='^(git|protections)/' leaves it out.\n\n")
		flags.PrintDefaults()
	}
	rows := flags.String("rows", os.Getenv("ROWS"), "regular `expression` that chooses rows by their names; all when empty (variable ROWS)")
	flags.StringVar(&s.json, "json", filepath.Join("bin", "bench.json"), "`file` to write the figures to")
	flags.StringVar(&s.checkout, "checkout", ".", "`directory` of the checkout, with config and bin in it")
	flags.BoolVar(&s.list, "list", false, "list the rows and measure nothing")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	if s.rows, err = regexp.Compile(*rows); err != nil {
		return settings{}, fmt.Errorf("--rows: %w", err)
	}
	s.checkout, err = filepath.Abs(s.checkout)
	return s, err
}

// run measures the chosen rows, and shows them even if an error occurred in between.
func run(ctx context.Context, s settings) (passed bool, err error) {
	b := newBench(s, os.Stderr)
	if len(b.report.Rows) == 0 {
		return false, fmt.Errorf("no row is named like %q; --list shows them all", s.rows)
	}
	if s.list {
		for _, row := range b.report.Rows {
			fmt.Fprintf(os.Stdout, "%-32s %s\n", row.ID, row.Name)
		}
		return true, nil
	}
	if err := b.measure(ctx); err != nil {
		return false, err
	}
	fmt.Fprintln(os.Stdout)
	if err := b.report.WriteTable(os.Stdout); err != nil {
		return false, err
	}
	if err := b.report.WriteJSON(s.json); err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stdout, "\nAll samples are in %s.\n", s.json)
	return b.report.Passed(), context.Cause(ctx)
}
