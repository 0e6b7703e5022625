package git

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
)

// Errors of Import and Push that are about what was asked for.
var (
	// ErrURL: the URL is malformed, or of a kind that is not allowed.
	ErrURL = errors.New("this URL cannot be used")
	// ErrCredentials: the other side wants credentials, or others.
	ErrCredentials = errors.New("the remote does not accept the credentials, or requires credentials")
	// ErrTimeout: the time was not sufficient.
	ErrTimeout = errors.New("it took longer than allowed")
)

// ImportOptions say what to import.
type ImportOptions struct {
	// URL is an http or https URL, or with AllowFile a file URL. Credentials in it count unless Username or Password is set.
	URL string
	// Username and Password are for Basic authentication. They are sent to the host of the URL only.
	Username, Password string
	// Proxy is the URL of an HTTP proxy to go through, with its own credentials; the proxies of the environment do not count then.
	Proxy string
	// AllowFile allows to import from directories of this machine, which makes them readable for whoever chooses the URL.
	AllowFile bool
	// DefaultBranch is that of a repository that says none. "main" if empty.
	DefaultBranch string
	// Progress is told how far the import is. It must not block. It may be nil.
	Progress func(Progress)
}

// Progress is how far an import is: the phase as git names it, such as "Receiving objects", and its percentage.
type Progress struct {
	Phase   string
	Percent int
}

// Import makes the repository a copy of the branches and tags of another one. If the repository exists already it does
// nothing, whatever the options say. The error is a *LimitError past Limits.Import, which is looked at each second and in the end,
// past Limits.Push and Limits.ImportUnpacked in objects once they are unpacked, and past Limits.ImportTime. A transfer that stands still for a minute ends in any case.
func (r *Repository) Import(ctx context.Context, o ImportOptions) error {
	source, err := o.source()
	if err != nil {
		return err
	}
	if limit := r.engine.limits.ImportTime; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, limitf("The import took longer than the %s that the server allows.", limit))
		defer stop()
	}
	return r.create(func(staged *Repository) error { return staged.fetch(ctx, source, o) })
}

func (o *ImportOptions) source() (*source, error) {
	s, err := target{URL: o.URL, Username: o.Username, Password: o.Password, Proxy: o.Proxy, allowFile: o.AllowFile}.source()
	if err != nil {
		return nil, err
	}
	redirects := "initial"
	if s.authorized {
		redirects = "false" // the header would go along
	}
	s.settings = append(s.settings,
		setting{"http.lowSpeedLimit", "1000"}, setting{"http.lowSpeedTime", "60"},
		setting{"http.followRedirects", redirects},
		setting{"fetch.unpackLimit", "1"}) // one pack, however small
	return s, nil
}

// fetch fills the staged repository.
func (r *Repository) fetch(ctx context.Context, s *source, o ImportOptions) error {
	branch, format, err := r.engine.inspect(ctx, s)
	if err != nil {
		return explain(err)
	}
	if branch == "" {
		branch = o.DefaultBranch
	}
	if err := r.init(ctx, InitOptions{DefaultBranch: branch, ObjectFormat: format}); err != nil {
		return err
	}
	c := s.command("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap=")
	if o.Progress != nil {
		c.args[1] = "--progress"
		c.progress = &progress{tell: o.Progress}
	}
	if s.local() {
		// The other side's git runs here, but without this one's settings.
		c.args = append(c.args, "--upload-pack=git -c safe.directory=* upload-pack")
	}
	c.args = append(c.args, "--end-of-options", s.url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	c.dir, c.env = r.dir, append(slices.Clone(c.env), "GIT_DIR=.", "GIT_TRACE2_EVENT="+filepath.Join(r.dir, transfer))
	limited, stop := r.watchLimits(ctx)
	defer stop()
	if err := r.engine.run(limited, c); err != nil {
		return explain(err)
	}
	if err := r.withinLimits(ctx); err != nil {
		return err
	}
	if err := r.checked(ctx); err != nil {
		return err
	}
	if err := r.admitImport(ctx); err != nil {
		return err
	}
	if err := r.run(ctx, r.command("pack-refs", "--all")); err != nil {
		return err
	}
	return r.graph(ctx, "--split")
}

// inspect asks for the default branch and the object format. Both are empty for an empty repository.
func (e *Engine) inspect(ctx context.Context, s *source) (branch, format string, err error) {
	c := s.command("ls-remote", "--symref")
	if s.local() {
		c.args = append(c.args, "--upload-pack=git -c safe.directory=* upload-pack")
	}
	c.args = append(c.args, "--end-of-options", s.url)
	out, err := e.output(ctx, 64<<20, c)
	if err != nil {
		return "", "", err
	}
	lines, refs := bufio.NewScanner(bytes.NewReader(out)), 0
	for lines.Scan() {
		value, name, _ := strings.Cut(lines.Text(), "\t")
		if (strings.HasPrefix(name, branches) || strings.HasPrefix(name, tags)) && !strings.HasSuffix(name, "^{}") {
			refs++
		}
		if ref, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" && CheckRefName("refs/heads/"+ref) == nil {
			branch = ref
		} else if IsObjectID(value) && format == "" {
			format = map[int]string{40: "sha1", 64: "sha256"}[len(value)]
		}
	}
	if err := e.admitRefs(refs); err != nil {
		return "", "", err
	}
	return branch, format, lines.Err()
}

// admitRefs returns a *LimitError for an import with so many refs.
func (e *Engine) admitRefs(refs int) error {
	if limit := e.limits.Refs; limit > 0 && int64(refs) > limit {
		return limitf("The repository has %d branches and tags, more than the %d that the server allows.", refs, limit)
	}
	return nil
}

// withinLimits returns a *LimitError when an import has brought more than the server allows. What the other side has said before means
// nothing.
func (r *Repository) withinLimits(ctx context.Context) error {
	if most := r.engine.limits.Import; most > 0 {
		n, err := size(ctx, r.dir)
		if err != nil {
			return err
		}
		if n > most {
			return limitf("The repository has more than the %s that the server allows an import.", FormatBytes(most))
		}
	}
	// Each ref is a file until all are packed, and its lock before that.
	refs := 0
	err := walk(ctx, filepath.Join(r.dir, "refs"), func(_ string, info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			refs++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.engine.admitRefs(refs)
}

// watchLimits returns a context that ends with the *LimitError when an import exceeds its limits, and a func that ends the watch.
func (r *Repository) watchLimits(ctx context.Context) (context.Context, func()) {
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
				if err := r.withinLimits(ctx); LimitReached(err) != "" {
					cancel(err)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// explain names the failures that whoever asked for an import can do something about.
func explain(err error) error {
	failed := (*Error)(nil)
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

// progress reads the progress meter of git.
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

// parseProgress reads a line such as "Receiving objects:  45% (450/1000)". Lines of the other side ("remote: ...") do not
// count: they may say anything.
func parseProgress(line string) (Progress, bool) {
	phase, rest, _ := strings.Cut(line, ":")
	number, _, ok := strings.Cut(strings.TrimSpace(rest), "%")
	percent, err := strconv.Atoi(number)
	if !ok || err != nil || phase == "remote" || percent < 0 || percent > 100 {
		return Progress{}, false
	}
	return Progress{Phase: phase, Percent: percent}, true
}
