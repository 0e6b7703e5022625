package testbed

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/test/controlplane"
	"github.com/forgeplane/forgeplane/test/forgeplane"
	"github.com/forgeplane/forgeplane/test/process"
)

// servingTimeout limits the time until Forgeplane serves requests.
const servingTimeout = time.Minute

// running is one process of Forgeplane.
type running struct {
	options forgeplane.Options
	metrics string
	group   *process.Group
	process *process.Process
	stopped chan struct{}
}

// StartForgeplane starts Forgeplane in the way of "make run", on its own ports, and returns as soon as the process runs.
func (t *Testbed) StartForgeplane(ctx context.Context) error {
	r := &running{
		options: forgeplane.Options{
			Programs: filepath.Join(t.options.Checkout, "bin"), Data: t.path("data"), Logs: t.path("logs"), ControlPlane: t.plane,
		},
		group: process.NewGroup(), stopped: make(chan struct{}),
	}
	var metrics int
	for _, port := range []*int{&r.options.HTTPPort, &r.options.TLSPort, &r.options.HealthPort, &metrics} {
		var err error
		if *port, err = controlplane.FreePort(ctx); err != nil {
			return err
		}
	}
	program, err := r.options.Program()
	if err != nil {
		return err
	}
	r.metrics = fmt.Sprintf("127.0.0.1:%d", metrics)
	program.Args = append(program.Args, "--metrics-address="+r.metrics)
	if r.process, err = r.group.Start(program); err != nil {
		return fmt.Errorf("%w; \"make build\" builds it", err)
	}
	t.running = r
	go func() {
		select {
		case err := <-r.group.Failed():
			t.options.Failed(err)
		case <-r.stopped:
		}
	}()
	return nil
}

// StopForgeplane stops Forgeplane gracefully, if it runs.
func (t *Testbed) StopForgeplane() error {
	r := t.running
	if r == nil {
		return nil
	}
	t.running = nil
	close(r.stopped)
	return r.group.Stop()
}

// Running reports whether Forgeplane is started. The other methods about Forgeplane must only be called if it is.
func (t *Testbed) Running() bool { return t.running != nil }

// PID returns the process id of Forgeplane.
func (t *Testbed) PID() int { return t.running.process.PID() }

// URL returns the address of Forgeplane for git clients.
func (t *Testbed) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", t.running.options.HTTPPort) }

// AwaitServing waits until Forgeplane reports that it is ready.
func (t *Testbed) AwaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, servingTimeout, fmt.Errorf("Forgeplane did not serve within %s", servingTimeout))
	defer cancel()
	return t.running.options.WaitReady(ctx)
}

// poll repeats a question until the answer is yes. The error after a timeout contains what.
func poll(ctx context.Context, patience time.Duration, what string, ask func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waiting for %s took longer than %s", what, patience))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		done, err := ask(ctx)
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}
