package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
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

// Unwrap returns git.ErrBusy: another request, which waits less, may have more time.
func (timedOut) Unwrap() error { return process.ErrBusy }

// Compare compares two commits within the given time. An empty from stands for the empty tree. Callers must not change the result.
func Compare(ctx context.Context, r *git.Repository, from, to string, patience time.Duration) (Diff, error) {
	if from == "" {
		from = object.EmptyTree(to)
	}
	if err := object.CheckIDs(from, to); err != nil {
		return Diff{}, err
	}
	size := func(d Diff) (bytes int) {
		for _, c := range d.Changes {
			bytes += len(c.Text) + len(c.Names) + len(c.OldPath) + len(c.NewPath) + 120
		}
		return bytes
	}
	d, err := recall.Find(ctx, r.Results(), "comparing", from+" "+to, size, func(ctx context.Context) (Diff, error) {
		return compare(ctx, r, from, to, patience)
	})
	if late := (timedOut{}); errors.As(err, &late) {
		return late.diff, nil
	}
	return d, err
}

var errPatience = errors.New("comparing took too long")

func compare(ctx context.Context, r *git.Repository, from, to string, patience time.Duration) (Diff, error) {
	limited, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	c := diffTree(r, from, to, "-z", "--raw")
	p := &diffParser{limits: diffBounds}
	leave, err := process.Enter(limited, r.Engine().Walks())
	if err == nil {
		err = r.Pipe(limited, c, func(out io.Reader) error {
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

// diffTree returns a command that writes a patch.
func diffTree(r *git.Repository, from, to string, options ...string) process.Command {
	c := process.In(r.Dir(), "diff-tree", "-r", "--patch", "--unified=3", "--find-renames", "-l"+renameLimit, "--no-color",
		"--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules=none", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/")
	c.Args = append(append(c.Args, options...), from, to, "--")
	c.Settings = []process.Setting{{"core.bigFileThreshold", comparedFile}}
	return c
}

const (
	// patchTimeout limits the time to write a patch, which depends on how fast its receiver is, and patchCPU its processor time.
	patchTimeout = time.Hour
	patchCPU     = 2 * time.Minute
)

// WritePatch writes the differences between two commits as a patch, without a limit of its size. An empty from stands for the empty tree. The error is
// git.ErrBusy if too many patches and archives are being written.
func WritePatch(ctx context.Context, r *git.Repository, from, to string, w io.Writer) error {
	if from == "" {
		from = object.EmptyTree(to)
	}
	if err := object.CheckIDs(from, to); err != nil {
		return err
	}
	leave, err := process.Enter(ctx, r.Engine().Archives())
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, patchTimeout, fmt.Errorf("writing a patch took longer than %s", patchTimeout))
	defer cancel()
	c := diffTree(r, from, to, "--full-index")
	c.Stdout, c.Bounds = w, process.Bounds{CPU: patchCPU}
	return r.Run(ctx, c)
}
