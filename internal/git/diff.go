package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Diff has the differences between two commits.
type Diff struct {
	// Changes are in Git's order. Beyond 10,000 changes, or 4 MiB of paths, they are omitted, and Truncated is true.
	Changes   []Change
	Truncated bool
	// TimedOut says that the time ran out before everything was read, so it is not known what is missing.
	TimedOut bool
}

// diffBounds are the limits of a diff. Beyond them a change has no text.
var diffBounds = diffLimits{changes: 10_000, paths: 4 << 20, files: 1_000, text: 200 << 10, lines: 50_000, bytes: 5 << 20}

// renameLimit is the maximum number of removed and added files that are compared with each other to find renames.
const renameLimit = "1000"

// comparedFile is the maximum size of a file that is compared line by line, for which git needs up to seventy times as much memory.
const comparedFile = "8m"

// timedOut carries a diff that must not be remembered.
type timedOut struct{ diff Diff }

func (timedOut) Error() string { return "the time was up" }

// Unwrap returns ErrBusy: another request, which waits less, may have more time.
func (timedOut) Unwrap() error { return ErrBusy }

// Diff compares two commits within the given time. An empty from stands for the empty tree. Callers must not change the result.
func (r *Repository) Diff(ctx context.Context, from, to string, patience time.Duration) (Diff, error) {
	if err := checkIDs(to); err != nil {
		return Diff{}, err
	}
	if from == "" {
		from = emptyTree(to)
	} else if err := checkIDs(from); err != nil {
		return Diff{}, err
	}
	size := func(d Diff) (bytes int) {
		for _, c := range d.Changes {
			bytes += len(c.Text) + len(c.Names) + len(c.OldPath) + len(c.NewPath) + 120
		}
		return bytes
	}
	d, err := recall(ctx, r, "comparing", from+" "+to, size, func(ctx context.Context) (Diff, error) {
		return r.diff(ctx, from, to, patience)
	})
	if late := (timedOut{}); errors.As(err, &late) {
		return late.diff, nil
	}
	return d, err
}

// emptyTree returns the id of the tree without entries, which every repository has, in the format of another id.
func emptyTree(like string) string {
	if len(like) == 40 {
		return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	}
	return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}

var errPatience = errors.New("comparing took too long")

func (r *Repository) diff(ctx context.Context, from, to string, patience time.Duration) (Diff, error) {
	limited, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	c := r.command("diff-tree", "-r", "-z", "--raw", "--patch", "--unified=3", "--find-renames", "-l"+renameLimit, "--no-color",
		"--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules=none", "--submodule=short",
		"--src-prefix=a/", "--dst-prefix=b/", from, to, "--")
	c.settings = []setting{{"core.bigFileThreshold", comparedFile}}
	p := &diffParser{limits: diffBounds}
	leave, err := enter(limited, r.engine.walks)
	if err == nil {
		err = r.pipe(limited, c, func(out io.Reader) error {
			p.in = bufio.NewReaderSize(out, 32<<10)
			return p.parse()
		})
		leave()
	}
	switch {
	case errors.Is(err, errOverflow), err == nil:
		return Diff{Changes: p.changes, Truncated: p.more > 0}, nil
	case ctx.Err() == nil && errors.Is(context.Cause(limited), errPatience):
		return Diff{}, timedOut{Diff{Changes: p.changes, TimedOut: true}}
	default:
		return Diff{}, fmt.Errorf("comparing %s with %s: %w", from, to, err)
	}
}

// pipe runs a command and passes its output to read. The command ends when read returns, even if that is early. An error of the command
// counts only if read has read everything without an error.
func (r *Repository) pipe(ctx context.Context, c command, read func(io.Reader) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in := io.Pipe()
	c.stdout = in
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(r.run(ctx, c))
	}()
	err := read(out)
	stop()
	out.Close()
	<-ended
	return err
}
