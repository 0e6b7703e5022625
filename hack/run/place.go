package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock locks the data directory for this process. The kernel releases the lock when the process ends, however it ends.
func lock(data string) (unlock func(), err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%s is in use by another run%s; stop that one, or choose another directory and other ports:"+
			" make run DEV_DIR=<directory> HTTP_PORT=<port> KUBE_PORT=<port> TLS_PORT=<port> HEALTH_PORT=<port> METRICS_PORT=<port>", data, holder(file))
	}
	if err == nil {
		err = errors.Join(file.Truncate(0), writeAtStart(file, fmt.Sprintln(os.Getpid())))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func writeAtStart(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// holder names the process that has the lock, which may not have written its id yet.
func holder(file *os.File) string {
	text, err := os.ReadFile(file.Name())
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// checkPorts returns an error with every port that is taken, and what to do about it.
func (s *settings) checkPorts(ctx context.Context) error {
	var errs []error
	for _, p := range s.ports() {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback(*p.number))
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("port %d, for %s, is taken by another program; choose another one: make run %s=<port>",
				*p.number, p.purpose, p.variable)
		}
		if err == nil {
			err = listener.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkPlace refuses data that was created for another checkout, because storages and imports contain absolute paths that cannot be changed.
func (s *settings) checkPlace() error {
	path := filepath.Join(s.data, "checkout")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, []byte(s.checkout), 0o600)
	}
	if err != nil {
		return err
	}
	if made := string(text); made != s.checkout {
		return fmt.Errorf("%s was made when the checkout was at %s; move it back, or remove %[1]s to start again", s.data, made)
	}
	return nil
}

// prepareData creates the directories, moves the logs of the last run aside and removes the files that describe a former run.
func (s *settings) prepareData() error {
	for _, directory := range []string{s.storage("default"), s.storage("fast"), s.runtime(), s.controlPlane()} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return err
		}
	}
	last := s.logs() + ".last"
	errs := []error{os.RemoveAll(last), os.RemoveAll(s.kubectlCache()), remove(s.env()), remove(s.gitCredentials())}
	if err := os.Rename(s.logs(), last); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sourced returns the path of env for the dot command of a shell, which would search PATH for a path without a slash.
func (s *settings) sourced() string {
	if path := s.shown(s.env()); strings.Contains(path, "/") {
		return path
	}
	return s.env()
}

// storage returns the path of a shard.
func (s *settings) storage(shard string) string { return filepath.Join(s.data, "storage", shard) }

// These are paths in the data directory.
func (s *settings) controlPlane() string   { return filepath.Join(s.data, "control-plane") }
func (s *settings) runtime() string        { return filepath.Join(s.data, "run") }
func (s *settings) logs() string           { return filepath.Join(s.data, "logs") }
func (s *settings) env() string            { return filepath.Join(s.data, "env") }
func (s *settings) gitCredentials() string { return filepath.Join(s.data, "git-credentials") }
func (s *settings) kubectlCache() string   { return filepath.Join(s.data, "kubectl-cache") }
func (s *settings) samplesStamp() string   { return filepath.Join(s.data, "samples.sum") }
