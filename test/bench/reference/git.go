package reference

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// GitBackend is git's own server, "git http-backend", behind net/http/cgi. Every client can clone, and can push if the configuration of a
// repository has http.receivepack.
type GitBackend struct {
	*Process
	// URL is the address of the repositories. The path of each repository is relative to the served directory.
	URL string
}

// StartGitBackend serves the repositories below a directory.
func StartGitBackend(ctx context.Context, directory string) (*GitBackend, error) {
	p, address, err := start(ctx, "git-backend", directory)
	if err != nil {
		return nil, err
	}
	return &GitBackend{Process: p, URL: "http://" + address}, nil
}

func serveGit(ctx context.Context, directory string) error {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	where, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return fmt.Errorf("looking for git http-backend: %w", err)
	}
	server := http.Server{
		Handler: &cgi.Handler{
			Path: filepath.Join(strings.TrimSpace(string(where)), "git-http-backend"),
			Root: "/",
			Env: []string{
				"GIT_PROJECT_ROOT=" + directory, "GIT_HTTP_EXPORT_ALL=1",
				"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			},
		},
		ReadHeaderTimeout: 10 * time.Second,
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := announce(listener.Addr().String()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
