package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

const (
	// walkTimeout limits a command that walks through history, and maxWalk its output, in bytes.
	walkTimeout = time.Minute
	maxWalk     = 64 << 20
	// maxWalks is the maximum number of walks at once, in all repositories: each can use up to one processor and much memory.
	maxWalks = 16
)

// WalkOutput runs a command that walks through history, once a slot is free.
func (r *Repository) WalkOutput(ctx context.Context, c process.Command) (out []byte, err error) {
	err = r.Walking(ctx, func(ctx context.Context) error {
		out, err = r.Output(ctx, maxWalk, c)
		return err
	})
	return out, err
}

// WalkLines is WalkOutput for a command with much output: it reads line by line and keeps nothing.
func (r *Repository) WalkLines(ctx context.Context, c process.Command, each func(line string) error) error {
	return r.Walking(ctx, func(ctx context.Context) error {
		return r.Pipe(ctx, c, func(out io.Reader) error {
			lines, read := bufio.NewScanner(out), 0
			lines.Buffer(nil, object.MaxCommit)
			for lines.Scan() {
				if read += len(lines.Bytes()) + 1; read > maxWalk {
					return &process.Error{Command: c.Args[0], ExitCode: -1, Err: process.ErrOutputTooLarge}
				}
				if err := each(lines.Text()); err != nil {
					return err
				}
			}
			if errors.Is(lines.Err(), bufio.ErrTooLong) {
				return &process.Error{Command: c.Args[0], ExitCode: -1, Err: process.ErrOutputTooLarge}
			}
			return lines.Err()
		})
	})
}

// Walking calls do, which walks through history, once a slot is free.
func (r *Repository) Walking(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, walkTimeout, fmt.Errorf("walking through history took longer than %s: %w", walkTimeout, process.ErrBusy))
	defer cancel()
	leave, err := process.Enter(ctx, r.engine.walks)
	if err != nil {
		return err
	}
	defer leave()
	return do(ctx)
}

// Pipe runs a command and passes its output to read. The command ends when read returns, even if that is early. An error of the command
// counts only if read has read everything without an error.
func (r *Repository) Pipe(ctx context.Context, c process.Command, read func(io.Reader) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, in := io.Pipe()
	c.Stdout = in
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.CloseWithError(r.Run(ctx, c))
	}()
	err := read(out)
	stop()
	out.Close()
	<-ended
	return err
}
