// Package transfer moves objects between repositories: it serves the fetches and pushes of clients, imports repositories, and pushes to
// mirrors. It checks what comes from outside.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
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
	// NoSpace is called if git tells the client of a push that the storage has no space left. Git may report this as a result, and not fail.
	// It may be nil.
	NoSpace func()
	Stdin   io.Reader
	Stdout  io.Writer
}

// Serve serves one request.
func Serve(ctx context.Context, r *git.Repository, o ServeOptions) error {
	c := process.In(r.Dir())
	c.Env = nil // the services find the repository by their argument, and pass GIT_DIR to the hook
	switch o.Service {
	case UploadPack:
		c.Args = []string{"upload-pack", "--strict", "--stateless-rpc"}
	case ReceivePack:
		if err := checkHook(o.HooksDir); err != nil {
			return err
		}
		c.Args = []string{"receive-pack", "--stateless-rpc"}
		c.Settings = []process.Setting{{"core.hooksPath", o.HooksDir}, {"receive.maxInputSize", strconv.FormatInt(r.MaxPush(), 10)}}
		c.Env = append(c.Env, o.HookEnv...)
		c.Accepted = func() bool { return o.Accepted != nil && o.Accepted() }
	default:
		return fmt.Errorf("service %q does not exist", o.Service)
	}
	if o.Advertise {
		c.Args = append(c.Args, "--http-backend-info-refs")
	}
	c.Args = append(c.Args, ".")
	if o.Protocol != "" {
		c.Env = append(c.Env, "GIT_PROTOCOL="+o.Protocol)
	}
	c.Stdin, c.Stdout = o.Stdin, o.Stdout
	if o.Advertise {
		return r.Run(ctx, c)
	}
	b := r.Engine().Processes().Bounds()
	said := newSideband(o.Stdout, func(message []byte) error {
		if overfull.Match(message) {
			return overfullPush(r.MaxPush())
		}
		if o.NoSpace != nil && git.SaysNoSpace(string(message)) {
			o.NoSpace()
		}
		return b.Explain(message)
	})
	c.Stdout, c.Short = said, said.interject
	err := r.Run(ctx, c)
	if err := said.end(err); err != nil {
		return fmt.Errorf("reporting the result to the client: %w", err)
	}
	return err
}

// overfull matches git's message about a pack that exceeds receive.maxInputSize.
var overfull = regexp.MustCompile(`pack exceeds maximum allowed size`)

func overfullPush(limit int64) error {
	return process.Limitf("The push has more than the %s that the server takes in one push.", process.FormatBytes(limit))
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
