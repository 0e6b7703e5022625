package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// FreePort chooses from these ports. The kernel uses ports from 32768 on for connections, so a port in this range stays free for a program that
// starts later, or starts a second time.
const (
	firstPort = 20000
	lastPort  = 32000
	attempts  = 100
)

// FreePort returns a free port of 127.0.0.1. The port belongs to the caller until the process ends, so a program that is stopped and started again
// finds its port free, whatever other tests run at the same time.
func FreePort(ctx context.Context) (int, error) {
	for range attempts {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:forbidigo // processes that choose at the same time must not choose the same
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

// reserve reserves a port, unless it is already reserved in this process or another one. Each port is a file that stays open and locked until the
// process ends. The files are not among the temporary files, because tests that run at the same time can have different directories for those.
func reserve(port int) (bool, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "forgeplane-test-ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("making the directory of the ports in use: %w", err)
	}
	fd, err := syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, fmt.Errorf("opening the file of a port: %w", err)
	}
	if err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return true, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return false, errors.Join(err, syscall.Close(fd))
}
