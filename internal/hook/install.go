package hook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// InstallDir makes dir a hooks directory for git, in which the hook binary is the pre-receive hook. It may be repeated,
// also with another binary.
func InstallDir(dir, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	}
	if info, err := os.Stat(binary); err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	} else if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("installing the pre-receive hook: %s cannot be executed", binary)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	}
	link := filepath.Join(dir, "pre-receive")
	if target, err := os.Readlink(link); err == nil && target == binary {
		return nil
	}
	staging, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	}
	defer os.RemoveAll(staging)
	staged := filepath.Join(staging, "pre-receive")
	if err := os.Symlink(binary, staged); err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	}
	if err := os.Rename(staged, link); err != nil {
		return fmt.Errorf("installing the pre-receive hook: %w", err)
	}
	return nil
}

// maxSocketPath is the maximum length of a socket path in the operating system.
const maxSocketPath = 107

// Listen listens on a unix socket that only this user can reach. It takes the place of a socket that no process listens on any more, as
// after a crash.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the hook socket, %s, is longer than %d bytes", path, maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the hook socket: %w", err)
	}
	switch conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path); {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("another process listens on the hook socket %s", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing a stale hook socket: %w", err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for hooks: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listening for hooks: %w", err)
	}
	return l, nil
}
