// Package controlplane starts and stops a Kubernetes control plane: etcd, kube-apiserver, and the controllers of garbage, namespaces and aggregated
// roles. It can be reached only from this machine.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/forgeplane/forgeplane/test/process"
)

// Options configure a control plane. Only Directory is required.
type Options struct {
	// Directory keeps everything: the data of etcd, keys, kubeconfig files and logs. It is created if it does not exist. A control plane that
	// starts on the directory of an earlier one has the same objects, authorities and keys.
	Directory string
	// Logs is the directory of the logs of the programs, one file each. If it is empty, it is logs in Directory.
	Logs string
	// Binaries are the programs to run. If they are empty, FindBinaries finds them.
	Binaries Binaries
	// Port is the port of kube-apiserver on 127.0.0.1, or 0 for any free port.
	Port int
	// Ephemeral disables etcd's syncs to disk, which makes writes faster. Data survives a killed process, but not a power failure.
	Ephemeral bool
	// Audit are the users whose requests kube-apiserver logs in AuditLog.
	Audit []string
	// Flags are further flags of kube-apiserver. If a flag is given twice, the last one counts.
	Flags []string
	// Prepare is called when kube-apiserver is ready, before the controllers start. The garbage collector knows kinds that Prepare installs from
	// the start. It looks for other kinds only every 30 s.
	Prepare func(ctx context.Context, administrator *rest.Config) error
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	directory     string
	logs          string
	port          int
	clients       *authority
	administrator *rest.Config
	store         *http.Client
	programs      programs
}

// programs are the running programs of a control plane.
type programs interface {
	Stop() error
	Failed() <-chan error
	Processes() []*process.Process
}

// Start starts a control plane and returns when it is ready. The context limits only the start, and Stop ends the control plane. If the start
// fails, nothing is left running.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	group := process.NewGroup()
	c := &ControlPlane{port: options.Port, programs: group}
	err := c.start(ctx, group, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, group *process.Group, options Options) error {
	err := c.locate(options.Directory)
	if err != nil {
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
	if _, err := group.Start(c.etcd(options)); err != nil {
		return err
	}
	if _, err := group.Start(c.apiServer(options)); err != nil {
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
	_, err = group.Start(c.controllers(options))
	return err
}

// Stop stops the control plane, the controllers first and etcd last, and returns when all processes are gone.
func (c *ControlPlane) Stop() error {
	if c.store != nil {
		c.store.CloseIdleConnections()
	}
	return c.programs.Stop()
}

// Failed receives the error of the first program that ended by itself, with the last lines of its log.
func (c *ControlPlane) Failed() <-chan error { return c.programs.Failed() }

// Processes returns the programs that this process has started, in the order in which they started.
func (c *ControlPlane) Processes() []*process.Process { return c.programs.Processes() }

// URL returns the address of kube-apiserver.
func (c *ControlPlane) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.port) }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *ControlPlane) Kubeconfig() string { return c.path(administratorFile) }

// Logs returns the directory of the logs of the programs, one file each.
func (c *ControlPlane) Logs() string { return c.logs }

// locate sets what follows from the directory.
func (c *ControlPlane) locate(directory string) (err error) {
	c.directory, err = filepath.Abs(directory)
	c.store = newStore(c.path(strings.TrimPrefix(etcdSocket, "unix://")))
	return err
}

func (c *ControlPlane) path(elements ...string) string {
	return filepath.Join(append([]string{c.directory}, elements...)...)
}
