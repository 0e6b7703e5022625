package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// The ports that FreePort chooses from. The kernel gives those from 32768 on to connections, so that one of these stays
// free for a program that is yet to start, or starts a second time.
const (
	firstPort = 20000
	lastPort  = 32000
	attempts  = 100
)

// FreePort returns a port of 127.0.0.1 that nobody listens on. Ports that are chosen by chance differ between tests that
// run at the same time.
func FreePort(ctx context.Context) (int, error) {
	for range attempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("found no free port in %d attempts", attempts)
}
