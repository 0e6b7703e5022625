// Package hooktest answers hooks in tests, which are the hook themselves.
package hooktest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeplane/forgeplane/internal/hook"
)

// Main runs the tests of a package, or the hook where git runs this program under its name.
func Main(m *testing.M) {
	if filepath.Base(os.Args[0]) == "pre-receive" {
		os.Exit(hook.PreReceive(os.Stdin, os.Stderr, os.Getenv))
	}
	os.Exit(m.Run())
}

// Serving is a server that answers hooks until the end of the test.
type Serving struct {
	hook.Server
	// Dir is the directory of the hook, and Socket is the socket of the server for the hook.
	Dir, Socket string
	// Stop ends the answers before.
	Stop context.CancelFunc
}

// Serve starts a server.
func Serve(t testing.TB) *Serving {
	t.Helper()
	dir, err := os.MkdirTemp("", "hooks-") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &Serving{Dir: filepath.Join(dir, "hooks"), Socket: filepath.Join(dir, "s")}
	if err := hook.InstallDir(s.Dir, self); err != nil {
		t.Fatal(err)
	}
	l, err := hook.Listen(s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.Stop = stop
	ended := make(chan error, 1)
	go func() { ended <- s.Server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}
