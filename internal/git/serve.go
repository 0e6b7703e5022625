package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Service is a service that a Git client requests.
type Service string

// The services: UploadPack serves fetches and clones, ReceivePack serves pushes.
const (
	UploadPack  Service = "git-upload-pack"
	ReceivePack Service = "git-receive-pack"
)

// ErrHookMissing is returned for a push that no hook would check.
var ErrHookMissing = errors.New("the pre-receive hook does not exist")

// ServeOptions describe one request of a Git client, in the stateless form of the protocol.
type ServeOptions struct {
	Service Service
	// Advertise lists the refs and ends. Otherwise Stdin has the request.
	Advertise bool
	// Protocol is the client's Git-Protocol header, already validated. It may be empty.
	Protocol string
	// HooksDir has the pre-receive hook that every push must pass. It is required for ReceivePack.
	HooksDir string
	// HookEnv are environment variables for the hook, as "NAME=value".
	HookEnv []string
	// Accepted reports whether a push has passed its hook. From then on, the push is not ended because of a lack of memory. nil means
	// never.
	Accepted func() bool
	Stdin    io.Reader
	Stdout   io.Writer
}

// Serve serves one request.
func (r *Repository) Serve(ctx context.Context, o ServeOptions) error {
	c := r.command()
	c.env = nil // the services find the repository by their argument, and pass GIT_DIR to the hook
	switch o.Service {
	case UploadPack:
		c.args = []string{"upload-pack", "--strict", "--stateless-rpc"}
	case ReceivePack:
		if err := checkHook(o.HooksDir); err != nil {
			return err
		}
		c.args = []string{"receive-pack", "--stateless-rpc"}
		c.settings = []setting{{"core.hooksPath", o.HooksDir}, {"receive.maxInputSize", strconv.FormatInt(r.MaxPush(), 10)}}
		c.env = append(c.env, o.HookEnv...)
		c.accepted = func() bool { return o.Accepted != nil && o.Accepted() }
	default:
		return fmt.Errorf("service %q does not exist", o.Service)
	}
	if o.Advertise {
		c.args = append(c.args, "--http-backend-info-refs")
	}
	c.args = append(c.args, ".")
	if o.Protocol != "" {
		c.env = append(c.env, "GIT_PROTOCOL="+o.Protocol)
	}
	c.stdin, c.stdout = o.Stdin, o.Stdout
	if o.Advertise {
		return r.run(ctx, c)
	}
	b := r.engine.bounds
	said := newSideband(o.Stdout, []sentence{{starved, b.starved()}, {overtime, b.late()}, {overfull, overfullPush(r.MaxPush())}})
	c.stdout, c.short = said, said.interject
	err := r.run(ctx, c)
	if err := said.end(err); err != nil {
		return fmt.Errorf("reporting the result to the client: %w", err)
	}
	return err
}

func overfullPush(limit int64) error {
	return limitf("The push has more than the %s that the server takes in one push.", FormatBytes(limit))
}

// checkHook makes sure that git will run the hook, because git silently ignores a hook that is missing or not executable.
func checkHook(dir string) error {
	info, err := os.Stat(filepath.Join(dir, "pre-receive"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHookMissing, err)
	}
	if !filepath.IsAbs(dir) || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%w: the file in %q cannot be executed", ErrHookMissing, dir)
	}
	return checkHookDir(dir)
}

// checkHookDir rejects a hooks directory to which another user could write. Forgeplane created the directory, but it may have been removed
// since, and another user may have created one with the same name.
func checkHookDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrHookMissing, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %q is not a directory of this user alone", ErrHookMissing, dir)
	}
	return nil
}
