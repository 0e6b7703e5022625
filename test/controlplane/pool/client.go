package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/forgeplane/forgeplane/test/controlplane"
)

// Variable is the environment variable with the path of the pool's socket.
const Variable = "FORGEPLANE_TEST_POOL"

// Start returns a control plane with the kinds and the permissions of the controllers, but without Forgeplane. It is leased from the pool, or
// started in the directory if there is no pool. Stop ends the lease.
func Start(ctx context.Context, directory string) (*controlplane.ControlPlane, error) {
	socket := os.Getenv(Variable)
	if socket == "" {
		return controlplane.Start(ctx, options(directory))
	}
	if err := readInputs(); err != nil {
		return nil, err
	}
	leased, err := take(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("leasing a control plane from the pool at %s: %w", socket, err)
	}
	return leased, nil
}

func take(ctx context.Context, socket string) (*controlplane.ControlPlane, error) {
	connection, err := new(net.Dialer).DialUnix(ctx, "unix", nil, &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		return nil, err
	}
	interrupted := context.AfterFunc(ctx, func() { _ = connection.Close() })
	var answer lease
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	if !interrupted() {
		return nil, ctx.Err()
	}
	if answer.Error != "" {
		return nil, errors.Join(errors.New(answer.Error), connection.Close())
	}
	failed, ended := make(chan error, 1), make(chan struct{})
	var released atomic.Bool
	go func() {
		defer close(ended)
		// The pool sends nothing more, so this waits for the end of the lease.
		if _, err := connection.Read(make([]byte, 1)); !released.Load() {
			failed <- fmt.Errorf("the control plane in %s ended: %w", answer.Directory, err)
		}
	}()
	release := func() error {
		released.Store(true)
		err := connection.CloseWrite()
		<-ended
		return errors.Join(err, connection.Close())
	}
	attached, err := controlplane.Attach(answer.Location, failed, release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return attached, nil
}
