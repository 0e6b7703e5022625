// Command run is the development run of "make run": a control plane, Forgeplane with everything in one process, the samples with a merge
// request and an issue, and a project that is imported from this checkout. It ends when it is interrupted or when any part of it ends. The
// next start finds the stored data again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() { os.Exit(command()) }

// command is main with an exit status.
func command() int {
	log.SetLogger(klog.Background())
	r := newReporter(os.Stdout)
	s, err := parseSettings(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make run:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends this process at once, and the kernel kills the other processes.
	context.AfterFunc(ctx, stop)
	defer stop()
	if err := run(ctx, s, r); err != nil {
		fmt.Fprintln(os.Stderr, "make run:", err)
		return 1
	}
	return 0
}

// run starts everything, waits until the end, and stops everything.
func run(interrupted context.Context, s settings, r *reporter) (err error) {
	unlock, err := lock(s.data)
	if err != nil {
		return err
	}
	defer unlock()
	if err := errors.Join(s.checkPlace(), s.checkPorts(interrupted)); err != nil {
		return err
	}
	if err := s.prepareData(); err != nil {
		return err
	}

	ctx, fail := context.WithCancelCause(interrupted)
	defer fail(nil)
	d := &development{settings: s, reporter: r}
	defer func() { err = errors.Join(err, d.stop()) }()
	ready := d.start(ctx, fail)
	if ready == nil {
		<-ctx.Done()
	}
	switch {
	case interrupted.Err() == nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case interrupted.Err() != nil && ready != nil:
		return errors.New("interrupted before it was ready")
	default:
		return ready
	}
}
