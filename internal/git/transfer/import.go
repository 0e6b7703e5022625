package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/upkeep"
)

// Errors of Import and Push that the user can do something about.
var (
	// ErrURL: the URL is malformed, or of a kind that is not allowed.
	ErrURL = errors.New("this URL cannot be used")
	// ErrCredentials: the other side requires credentials, or rejects the given ones.
	ErrCredentials = errors.New("the remote does not accept the credentials, or requires credentials")
	// ErrTimeout: the operation exceeded its time limit.
	ErrTimeout = errors.New("it took longer than allowed")
)

// ImportOptions configure Import.
type ImportOptions struct {
	// URL is an http or https URL, or with AllowFile a file URL. Credentials in it are used unless Username or Password is set.
	URL string
	// Username and Password are for Basic authentication. They are only sent to the host of the URL.
	Username, Password string
	// Proxy is the URL of an HTTP proxy, with its own credentials. It replaces the proxies of the environment.
	Proxy string
	// AllowFile allows imports from directories of this machine. Everyone who can choose the URL can then read them.
	AllowFile bool
	// DefaultBranch is the default branch if the other repository does not name one. The default is "main".
	DefaultBranch string
	// Progress is called with the progress of the import. It must not block. It may be nil.
	Progress func(Progress)
}

// Progress is the progress of an import: the phase as git names it, such as "Receiving objects", and its percentage.
type Progress struct {
	Phase   string
	Percent int
}

// Import makes the repository a copy of the branches and tags of another one. If the repository exists already, it does nothing. The error
// is a *git.LimitError if the import exceeds git.Limits.Import, which is checked every second and at the end; git.Limits.Push and
// git.Limits.ImportUnpacked, which apply to unpacked objects; or git.Limits.ImportTime. A transfer that stalls for a minute is always ended.
func Import(ctx context.Context, r *git.Repository, o ImportOptions) error {
	source, err := o.source()
	if err != nil {
		return err
	}
	if limit := r.Engine().Limits().ImportTime; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, process.Limitf("The import took longer than the %s that the server allows.", limit))
		defer stop()
	}
	return r.Create(func(staged *git.Repository) error { return fetch(ctx, staged, source, o) })
}

func (o *ImportOptions) source() (*source, error) {
	s, err := target{URL: o.URL, Username: o.Username, Password: o.Password, Proxy: o.Proxy, allowFile: o.AllowFile}.source()
	if err != nil {
		return nil, err
	}
	redirects := "initial"
	if s.authorized {
		redirects = "false" // a redirect would forward the header
	}
	s.settings = append(s.settings,
		process.Setting{"http.lowSpeedLimit", "1000"}, process.Setting{"http.lowSpeedTime", "60"},
		process.Setting{"http.followRedirects", redirects},
		process.Setting{"fetch.unpackLimit", "1"}) // always one pack, however small
	return s, nil
}

// fetch fetches into the staged repository.
func fetch(ctx context.Context, r *git.Repository, s *source, o ImportOptions) error {
	branch, format, err := inspect(ctx, r.Engine(), s)
	if err != nil {
		return explain(err)
	}
	if branch == "" {
		branch = o.DefaultBranch
	}
	if err := r.Format(ctx, git.InitOptions{DefaultBranch: branch, ObjectFormat: format}); err != nil {
		return err
	}
	c := s.command("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap=")
	if o.Progress != nil {
		c.Args[1] = "--progress"
		c.Progress = &progress{tell: o.Progress}
	}
	if s.local() {
		// The git of the other side runs here, but without the settings of this engine.
		c.Args = append(c.Args, "--upload-pack=git -c safe.directory=* upload-pack")
	}
	c.Args = append(c.Args, "--end-of-options", s.url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	c.Dir, c.Env = r.Dir(), append(slices.Clone(c.Env), "GIT_DIR=.", "GIT_TRACE2_EVENT="+filepath.Join(r.Dir(), transfer))
	limited, stop := watchLimits(ctx, r)
	defer stop()
	if err := r.Engine().Processes().Run(limited, c); err != nil {
		return explain(err)
	}
	if err := withinLimits(ctx, r); err != nil {
		return err
	}
	if err := checked(ctx, r); err != nil {
		return err
	}
	if err := admitImport(ctx, r); err != nil {
		return err
	}
	if err := r.Run(ctx, process.In(r.Dir(), "pack-refs", "--all")); err != nil {
		return err
	}
	// The index of reachable objects makes clones and forks fast.
	if err := r.Run(ctx, process.In(r.Dir(), "repack", "-a", "-d", "-n", "--quiet", "--write-bitmap-index")); err != nil {
		return err
	}
	return upkeep.WriteGraph(ctx, r, "--split")
}

// inspect determines the default branch and the object format. Both are empty for an empty repository.
func inspect(ctx context.Context, e *git.Engine, s *source) (branch, format string, err error) {
	c := s.command("ls-remote", "--symref")
	if s.local() {
		c.Args = append(c.Args, "--upload-pack=git -c safe.directory=* upload-pack")
	}
	c.Args = append(c.Args, "--end-of-options", s.url)
	out, err := e.Processes().Output(ctx, 64<<20, c)
	if err != nil {
		return "", "", err
	}
	lines, refs := bufio.NewScanner(bytes.NewReader(out)), 0
	for lines.Scan() {
		value, name, _ := strings.Cut(lines.Text(), "\t")
		if (strings.HasPrefix(name, object.BranchPrefix) || strings.HasPrefix(name, object.TagPrefix)) && !strings.HasSuffix(name, "^{}") {
			refs++
		}
		if ref, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" && object.CheckRefName("refs/heads/"+ref) == nil {
			branch = ref
		} else if object.IsID(value) && format == "" {
			format = object.FormatOf(value)
		}
	}
	if err := admitRefs(e, refs); err != nil {
		return "", "", err
	}
	return branch, format, lines.Err()
}

// admitRefs returns a *git.LimitError if an import may not have that many refs.
func admitRefs(e *git.Engine, refs int) error {
	if limit := e.Limits().Refs; limit > 0 && int64(refs) > limit {
		return process.Limitf("The repository has %d branches and tags, more than the %d that the server allows.", refs, limit)
	}
	return nil
}

// withinLimits returns a *git.LimitError if an import exceeds the limits of the server, whatever the other side announced.
func withinLimits(ctx context.Context, r *git.Repository) error {
	if most := r.Engine().Limits().Import; most > 0 {
		n, err := disk.Size(ctx, r.Dir())
		if err != nil {
			return err
		}
		if n > most {
			return process.Limitf("The repository has more than the %s that the server allows an import.", process.FormatBytes(most))
		}
	}
	// Each ref is a file until all are packed, and a lock file before that.
	refs := 0
	err := disk.Walk(ctx, filepath.Join(r.Dir(), "refs"), func(_ string, info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			refs++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return admitRefs(r.Engine(), refs)
}

// watchLimits returns a context that ends with a *git.LimitError when an import exceeds its limits, and a function that ends the check.
func watchLimits(ctx context.Context, r *git.Repository) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := withinLimits(ctx, r); git.LimitReached(err) != "" {
					cancel(err)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// explain converts failures that the user can do something about to the errors of this package.
func explain(err error) error {
	failed := (*process.Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	for _, sign := range []string{"could not read Username", "could not read Password", "Authentication failed", "returned error: 403"} {
		if strings.Contains(failed.Stderr, sign) {
			return fmt.Errorf("%w: %w", ErrCredentials, err)
		}
	}
	return err
}

// progress parses the progress meter of git.
type progress struct {
	line []byte
	last Progress
	tell func(Progress)
}

func (p *progress) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\r' && c != '\n' {
			if len(p.line) < 200 {
				p.line = append(p.line, c)
			}
			continue
		}
		if now, ok := parseProgress(string(p.line)); ok && now != p.last {
			p.last = now
			p.tell(now)
		}
		p.line = p.line[:0]
	}
	return len(b), nil
}

// parseProgress parses a line such as "Receiving objects: 45% (450/1000)". It ignores lines from the other side ("remote: ..."), because
// they can contain anything.
func parseProgress(line string) (Progress, bool) {
	phase, rest, _ := strings.Cut(line, ":")
	number, _, ok := strings.Cut(strings.TrimSpace(rest), "%")
	percent, err := strconv.Atoi(number)
	if !ok || err != nil || phase == "remote" || percent < 0 || percent > 100 {
		return Progress{}, false
	}
	return Progress{Phase: phase, Percent: percent}, true
}
