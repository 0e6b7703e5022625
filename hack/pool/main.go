// Command pool runs a command whose tests share control planes, as in "go run ./hack/pool go test ./controllers/...". The control planes end
// with the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/forgeplane/forgeplane/test/controlplane/pool"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: pool <command> [argument ...]")
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	var ended *exec.ExitError
	// The command gets the signal, too, and the control planes end after it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := run(context.Background(), os.Args[1], os.Args[2:]...); errors.As(err, &ended) {
		os.Exit(1) // the command has said why
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "pool:", err)
		os.Exit(1)
	}
}

// run runs a command with a pool.
func run(ctx context.Context, name string, args ...string) error {
	directory, err := makeDirectory()
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	socket := filepath.Join(directory, "socket")
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- (&pool.Pool{Directory: directory}).Serve(listener) }()
	command := exec.CommandContext(ctx, name, args...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), pool.Variable+"="+socket)
	return errors.Join(command.Run(), listener.Close(), <-served)
}

// makeDirectory makes the directory of the control planes. Its name is the same in each run that has temporary files of its own, because Go's
// cache knows a result only for the same environment variables.
func makeDirectory() (string, error) {
	directory := filepath.Join(os.TempDir(), "pool")
	err := os.Mkdir(directory, 0o700)
	if errors.Is(err, os.ErrExist) {
		return os.MkdirTemp("", "pool")
	}
	return directory, err
}
