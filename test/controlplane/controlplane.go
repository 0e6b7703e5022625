// Package controlplane starts and stops a Kubernetes control plane: etcd, kube-apiserver, and the controllers
// of garbage, namespaces and aggregated roles. Nothing of it is reachable but from this machine.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/forgeplane/forgeplane/test/process"
)

// Options say what to start. Only Directory is needed.
type Options struct {
	// Directory keeps everything: the data of etcd, keys, kubeconfig files and logs. It is made when missing, and a
	// control plane that starts on the directory of an earlier one has that one's objects, authorities and keys.
	Directory string
	// Logs is the directory of the programs' logs, one file each; logs in Directory when empty.
	Logs string
	// Binaries are the programs to run; those of FindBinaries when empty.
	Binaries Binaries
	// Port is where kube-apiserver listens on 127.0.0.1; 0 takes a free one.
	Port int
	// Ephemeral disables etcd's syncs to disk, which makes writes faster. Data survives a killed process, but not a power failure.
	Ephemeral bool
	// Audit are the users whose requests kube-apiserver notes in AuditLog.
	Audit []string
	// Prepare is called when kube-apiserver is ready and before the controllers start. Kinds that are installed in it are
	// known to the garbage collector at once; it looks for others every 30 s only.
	Prepare func(ctx context.Context, administrator *rest.Config) error
}

// ControlPlane is a control plane that runs.
type ControlPlane struct {
	directory     string
	logs          string
	port          int
	clients       *authority
	administrator *rest.Config
	group         *process.Group
}

// Start starts a control plane and returns when it is ready. The context bounds the start only; Stop ends what runs.
// When the start fails, nothing is left running.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	c := &ControlPlane{port: options.Port, group: process.NewGroup()}
	err := c.start(ctx, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, options Options) error {
	var err error
	if c.directory, err = filepath.Abs(options.Directory); err != nil {
		return err
	}
	c.logs = c.path("logs")
	if options.Logs != "" {
		c.logs = options.Logs
	}
	if err := os.MkdirAll(c.directory, 0o700); err != nil {
		return err
	}
	if options.Binaries == (Binaries{}) {
		if options.Binaries, err = FindBinaries(); err != nil {
			return err
		}
	}
	if c.port == 0 {
		if c.port, err = FreePort(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(c.writeKeys(), c.writeAuditPolicy(options.Audit)); err != nil {
		return err
	}

	// kube-apiserver takes seconds to read its own configuration, and waits for etcd by itself.
	if _, err := c.group.Start(c.etcd(options)); err != nil {
		return err
	}
	if _, err := c.group.Start(c.apiServer(options)); err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	if options.Prepare != nil {
		if err := options.Prepare(ctx, c.Administrator()); err != nil {
			return err
		}
	}
	_, err = c.group.Start(c.controllers(options))
	return err
}

// Stop ends the control plane, the controllers first and etcd last, and returns when all of it is gone.
func (c *ControlPlane) Stop() error { return c.group.Stop() }

// Failed receives the end of the first program that ended by itself, with the last lines of its log.
func (c *ControlPlane) Failed() <-chan error { return c.group.Failed() }

// Processes returns the programs in the order in which they started.
func (c *ControlPlane) Processes() []*process.Process { return c.group.Processes() }

// URL is the address of kube-apiserver.
func (c *ControlPlane) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port) }

// Kubeconfig is the path of the administrator's kubeconfig file.
func (c *ControlPlane) Kubeconfig() string { return c.path(administratorFile) }

// Logs is the directory of the programs' logs, one file each.
func (c *ControlPlane) Logs() string { return c.logs }

func (c *ControlPlane) path(elements ...string) string {
	return filepath.Join(append([]string{c.directory}, elements...)...)
}
