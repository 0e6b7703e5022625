package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// The ports that FreePort chooses from. The kernel gives those from 32768 on to connections, so that one of these stays
// free for a program that is yet to start, or starts a second time.
const (
	firstPort = 20000
	lastPort  = 32000
	attempts  = 100
)

// FreePort returns a port of 127.0.0.1 that nobody listens on. It is this process's until that ends, so that a program that is stopped
// and started again finds its port free, whatever other tests run at the same time.
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
		mine, err := reserve(port)
		if err := errors.Join(err, listener.Close()); err != nil {
			return 0, err
		}
		if mine {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port in %d attempts", attempts)
}

// reserve takes a port for this process, unless another one has it. Each port is a byte of one file, which is locked until the process
// ends: closing the file earlier would give up all of them.
func reserve(port int) (bool, error) {
	fd, err := syscall.Open(filepath.Join(os.TempDir(), "forgeplane-test-ports"), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, fmt.Errorf("opening the file of the ports in use: %w", err)
	}
	err = syscall.FcntlFlock(uintptr(fd), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(port), Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}
