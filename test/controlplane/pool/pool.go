// Package pool shares control planes between the test processes of one run. To start a control plane and to install the kinds takes
// longer than the specs of most suites.
//
// A test process leases a control plane and is alone with it. When the lease ends, even because the process was killed, the pool restores the
// objects that the control plane had before its first lease.
package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

// startTimeout limits the start of a control plane, and restoreTimeout the end of a lease.
const (
	startTimeout   = 2 * time.Minute
	restoreTimeout = time.Minute
)

// Pool leases control planes to the clients of a socket.
type Pool struct {
	// Directory is the directory of the control planes. It must exist.
	Directory string

	lock    sync.Mutex
	started int
	idle    []*plane
}

// plane is a control plane, with the objects that it had before its first lease.
type plane struct {
	*controlplane.ControlPlane
	snapshot *controlplane.Snapshot
}

// lease is the answer of the pool to a client. The lease ends when the client closes its side of the connection.
type lease struct {
	controlplane.Location
	Error string `json:"error,omitempty"`
}

// Serve leases control planes until the listener is closed. It stops them when the last lease has ended.
func (p *Pool) Serve(listener net.Listener) error {
	var leases sync.WaitGroup
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			leases.Wait()
			return p.stop()
		}
		if err != nil {
			return err
		}
		leases.Go(func() { p.lease(connection) })
	}
}

// lease serves one client. The client sees the end of the connection when the control plane is restored, or when it fails. A control plane that has
// failed is not leased again.
func (p *Pool) lease(client net.Conn) {
	defer client.Close()
	leased, err := p.take()
	if err != nil {
		_ = json.NewEncoder(client).Encode(lease{Error: err.Error()})
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The client sends nothing, so this waits for the end of the lease.
		_, _ = client.Read(make([]byte, 1))
	}()
	if json.NewEncoder(client).Encode(lease{Location: leased.Location()}) == nil {
		select {
		case <-ended:
		case err := <-leased.Failed():
			_ = errors.Join(err, leased.Stop()) // the suite says that its control plane ended
			return
		}
	}
	p.put(leased)
}

// take returns an idle control plane, or starts one.
func (p *Pool) take() (*plane, error) {
	p.lock.Lock()
	for last := len(p.idle) - 1; last >= 0; last-- {
		taken := p.idle[last]
		p.idle = p.idle[:last]
		select {
		case err := <-taken.Failed():
			_ = errors.Join(err, taken.Stop())
		default:
			p.lock.Unlock()
			return taken, nil
		}
	}
	p.started++
	directory := filepath.Join(p.Directory, strconv.Itoa(p.started))
	p.lock.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	started, err := controlplane.Start(ctx, options(directory))
	if err != nil {
		return nil, err
	}
	snapshot, err := started.Snapshot(ctx)
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return &plane{ControlPlane: started, snapshot: snapshot}, nil
}

// put makes a control plane idle, or stops it if it cannot be restored.
func (p *Pool) put(leased *plane) {
	ctx, cancel := context.WithTimeout(context.Background(), restoreTimeout)
	defer cancel()
	if leased.Restore(ctx, leased.snapshot) != nil {
		_ = leased.Stop()
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.idle = append(p.idle, leased)
}

// stop stops the control planes.
func (p *Pool) stop() error {
	p.lock.Lock()
	defer p.lock.Unlock()
	var errs []error
	for _, one := range p.idle {
		errs = append(errs, one.Stop())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the control planes: %w", err)
	}
	return nil
}
