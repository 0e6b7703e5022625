package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix" // the standard library cannot write all files to disk

	"github.com/forgeplane/forgeplane/test/bench/figures"
	"github.com/forgeplane/forgeplane/test/bench/gitclient"
	"github.com/forgeplane/forgeplane/test/bench/testbed"
	"github.com/forgeplane/forgeplane/test/bench/usage"
)

// bench is one run of the benchmarks.
type bench struct {
	settings settings
	report   figures.Report
	messages io.Writer
	begun    time.Time
	// directory contains everything that the run creates, and is removed with the run.
	directory string
}

func newBench(s settings, messages io.Writer) *bench {
	b := &bench{settings: s, messages: messages, begun: time.Now()}
	for _, row := range rows() {
		if s.rows.MatchString(row.ID) {
			b.report.Rows = append(b.report.Rows, row)
		}
	}
	return b
}

// say reports the progress of the run.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.messages, "%6.1f s  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// wants reports whether one of the rows was chosen.
func (b *bench) wants(ids ...string) bool {
	for _, id := range ids {
		if b.row(id) != nil {
			return true
		}
	}
	return false
}

func (b *bench) row(id string) *figures.Row {
	for _, row := range b.report.Rows {
		if row.ID == id {
			return row
		}
	}
	return nil
}

// record fills in a row, if it was chosen.
func (b *bench) record(id string, ours, reference []float64) {
	if row := b.row(id); row != nil && len(ours) > 0 {
		row.Measured(ours, reference)
		b.say("%s", row)
	}
}

// describe adds something that only this run knows, such as a size, to the name of a row.
func (b *bench) describe(id, what string) {
	if row := b.row(id); row != nil {
		row.Name += ", " + what
	}
}

// measure measures all rows, group by group. An error in one group is reported in its rows, and the next group begins.
func (b *bench) measure(ctx context.Context) (err error) {
	b.directory, err = os.MkdirTemp("", "forgeplane-bench-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() {
		b.say("removing %s", b.directory)
		err = errors.Join(err, os.RemoveAll(b.directory))
	}()
	if b.report.Commit, err = b.commit(ctx); err != nil {
		return err
	}
	b.report.Begun = b.begun.UTC().Truncate(time.Second)
	b.report.Machine = machine(ctx)
	if m := b.report.Machine; m.Busy() {
		b.say("this machine has other things to do (load %.1f on %d cores): ratios hold, other figures say little", m.Load, m.Cores)
	}
	for _, group := range b.groups() {
		if !b.wants(group.ids...) || ctx.Err() != nil {
			continue
		}
		if err := group.run(ctx); err != nil {
			b.say("%v", err)
			b.fail(err, group.ids...)
		}
	}
	return nil
}

// measureParts measures the parts that have a chosen row, and stops at the first error.
func (b *bench) measureParts(ctx context.Context, parts ...group) error {
	for _, part := range parts {
		if !b.wants(part.ids...) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// group is rows that are measured together.
type group struct {
	ids []string
	run func(ctx context.Context) error
}

// groups returns all rows in the order in which they are measured.
func (b *bench) groups() []group {
	return []group{
		{protectionRows, b.measureProtections},
		{gitRows, b.measureGit},
		{shardRows, b.measureShards},
		{mirrorRows, b.measureMirrors},
		{restRows, b.measureREST},
		{projectRows, b.measureProjects},
		{labelRows, b.measureLabels},
		{contentRows, b.measureContent},
		{hostileRows, b.measureHostile},
		{registryRows, b.measureRegistry},
		{cleanupRows, b.measureCleanups},
		{pipelineRows, b.measurePipelines},
		{mergeRequestRows, b.measureMergeRequests},
		{startRows, b.measureStarts},
	}
}

// fail marks the rows that were not measured.
func (b *bench) fail(err error, ids ...string) {
	for _, id := range ids {
		if row := b.row(id); row != nil && row.Ours == nil {
			row.Err = err
		}
	}
}

// with runs a function on its own testbed, which is removed afterwards.
func (b *bench) with(ctx context.Context, name string, use func(ctx context.Context, t *testbed.Testbed) error) (err error) {
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	b.say("starting a control plane and Forgeplane")
	t, err := testbed.Start(ctx, testbed.Options{
		Checkout: b.settings.checkout, Directory: filepath.Join(b.directory, name), Failed: failed,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	if err := t.AwaitServing(ctx); err != nil {
		return err
	}
	if err := use(ctx, t); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause // the errors that follow from the cause are less helpful
		}
		return err
	}
	return nil
}

// client returns a git client with the administrator's token.
func (b *bench) client(t *testbed.Testbed) (*gitclient.Client, error) {
	return gitclient.New(filepath.Join(b.directory, "home"), testbed.Administrator, t.Token())
}

// commit returns the commit of the checkout.
func (b *bench) commit(ctx context.Context) (string, error) {
	client, err := gitclient.New(filepath.Join(b.directory, "home"), "nobody", "none")
	if err != nil {
		return "", err
	}
	commit, err := client.Run(ctx, b.settings.checkout, nil, "describe", "--always", "--dirty", "--abbrev=12")
	if err != nil {
		return "", fmt.Errorf("the checkout must be a Git repository with a commit: %w", err)
	}
	return commit, nil
}

func machine(ctx context.Context) figures.Machine {
	m := figures.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Load: usage.Load(), Go: runtime.Version()}
	if version, err := exec.CommandContext(ctx, "git", "version").Output(); err == nil {
		m.Git = strings.TrimPrefix(strings.TrimSpace(string(version)), "git version ")
	}
	return m
}

// rounds describe how often something is measured.
type rounds struct {
	least, most int
	// enough reports after at least the minimum number of rounds whether the samples are sufficient. If it is nil, they are.
	enough func(ours, reference []float64) bool
}

// exactly returns a fixed number of rounds.
func exactly(number int) rounds { return rounds{least: number, most: number} }

// until continues, up to three times as long, until a ratio is known to about two hundredths, because a busy machine needs more rounds for that
// than an idle one. The value of the ratio does not influence the number of measurements.
func until(least int) rounds {
	return rounds{least: least, most: 3 * least, enough: func(ours, reference []float64) bool {
		return figures.Ratios(ours, reference).StandardError() <= 0.02
	}}
}

// alternate calls ours and reference in turn and swaps their order in each round, so that other work on the machine affects both. It returns their
// samples.
func alternate(often rounds, ours, reference func(round int) (float64, error)) (o, r []float64, err error) {
	for round := range often.most {
		if round >= often.least && (often.enough == nil || often.enough(o, r)) {
			break
		}
		pair := [2]float64{}
		order := [2]int{0, 1}
		if round%2 == 1 {
			order = [2]int{1, 0}
		}
		for _, which := range order {
			if pair[which], err = [2]func(int) (float64, error){ours, reference}[which](round); err != nil {
				return nil, nil, err
			}
		}
		o, r = append(o, pair[0]), append(r, pair[1])
	}
	return o, r, nil
}

// settle waits until the files of earlier samples are on disk, so that the next sample does not wait for them.
func settle() { unix.Sync() }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
