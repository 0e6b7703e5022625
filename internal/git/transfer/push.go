package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
	"github.com/forgeplane/forgeplane/internal/git/update"
)

// PushOptions configure Push.
type PushOptions struct {
	// URL is an http, https, ssh or git URL. A git URL needs no credentials, and has none.
	URL string
	// Username and Password are only sent to the host of the URL. The default user name for ssh is "git".
	Username, Password string
	// Identity is a private key for ssh in the format of OpenSSH or PEM, without a passphrase; empty if the password is used.
	Identity []byte
	// KnownHosts has the host keys that are accepted for ssh, as in a known_hosts file.
	KnownHosts []byte
	// Proxy is the URL of an HTTP proxy, with its own credentials. It replaces the proxies of the environment.
	Proxy string
	// Branch says whether to push a branch, named without "refs/heads/", and to remove it once it is gone. nil selects all branches.
	Branch func(name string) bool
	// Keep preserves refs that only the other side has. Without it, the other side is forced to be identical, for the branches that Branch
	// selects.
	Keep bool
	// Timeout limits the whole push. If it is 0 and ctx has no deadline, git.Options.CommandTimeout limits each command of the push.
	Timeout time.Duration
	// Stall is the time for which the transfer can stall, in whole seconds for http and https. The default is a minute.
	Stall time.Duration
	// Tell is called with the result for each ref that must change, in no order, unless the other side did not report one: refused is the reason
	// of a refusal, as in RefusedRef, or "". It may be nil.
	Tell func(u update.Ref, refused string)
}

// PushResult is the result of a push.
type PushResult struct {
	// Updated is the number of refs that were created, changed or removed on the other side.
	Updated int
	// Refused are the refs that were refused, sorted by name.
	Refused []RefusedRef
}

// RefusedRef is a ref that the other side refused to change.
type RefusedRef struct {
	// Name is the full name.
	Name string
	// Reason is the reason in the words of git or the other side, without credentials.
	Reason string
	// Diverged says that the ref of the other side has commits that this side does not have.
	Diverged bool
}

// Push makes the branches and tags of another repository identical to this one. An empty repository pushes nothing, and so removes nothing
// either. It does not overwrite changes that the other side makes after it was asked for its refs.
//
// For http and https, Push uses git's own helper with the protocol of gitremote-helpers(7) instead of `git push`: it can pass any number of
// refs through a pipe, and needs only one conversation to list refs and push. For ssh and git, Push talks to the server itself, so neither
// a program of ssh nor its configuration is used.
func Push(ctx context.Context, r *git.Repository, o PushOptions) (PushResult, error) {
	u, err := url.Parse(o.URL)
	var s *source
	if err != nil || native[u.Scheme] == "" {
		if s, err = (target{URL: o.URL, Username: o.Username, Password: o.Password, Proxy: o.Proxy}).source(); err != nil {
			return PushResult{}, err
		}
	}
	if o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, o.Timeout, ErrTimeout)
		defer stop()
	}
	var local []refs.Ref
	for ref, err := range refs.List(ctx, r, object.BranchPrefix, object.TagPrefix) {
		if err != nil {
			return PushResult{}, fmt.Errorf("listing refs: %w", err)
		}
		local = append(local, ref)
	}
	if len(local) == 0 {
		return PushResult{}, nil
	}
	decide := func(remote map[string]string) []change { return plan(local, remote, o.Branch, o.Keep) }
	if s == nil {
		return pushNative(ctx, r, o, u, decide)
	}
	stall := int(max(o.Stall, time.Second) / time.Second)
	if o.Stall == 0 {
		stall = 60
	}
	s.settings = append(s.settings,
		// A server that is busy sends a few bytes now and then.
		process.Setting{"http.lowSpeedLimit", "1"}, process.Setting{"http.lowSpeedTime", strconv.Itoa(stall)},
		process.Setting{"http.followRedirects", "false"})
	result, err := converse(ctx, r, s, o.Tell, decide)
	return result, explain(err)
}

// change is a change of a ref of another repository.
type change struct {
	update.Ref
	force bool
}

// plan returns the changes that make remote, a map of ref names to objects, identical to local. It ignores branches that branch does not
// select on both sides.
func plan(local []refs.Ref, remote map[string]string, branch func(string) bool, keep bool) []change {
	selected := func(name string) bool {
		if short, ok := strings.CutPrefix(name, object.BranchPrefix); ok {
			return branch == nil || branch(short)
		}
		return strings.HasPrefix(name, object.TagPrefix)
	}
	var changes []change
	here := make(map[string]bool, len(local))
	for _, ref := range local {
		here[ref.Name] = true
		if selected(ref.Name) && remote[ref.Name] != ref.Object {
			changes = append(changes, change{update.Ref{Name: ref.Name, Old: remote[ref.Name], New: ref.Object}, !keep})
		}
	}
	if keep {
		return changes
	}
	for name, id := range remote {
		if !here[name] && selected(name) {
			changes = append(changes, change{Ref: update.Ref{Name: name, Old: id}})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

// command returns the line that requests the change.
func (c change) command() string {
	if c.New == "" {
		return "push :" + c.Name + "\n"
	}
	if c.force {
		return "push +" + c.New + ":" + c.Name + "\n"
	}
	return "push " + c.New + ":" + c.Name + "\n"
}

// maxAdvertised is the maximum size of another repository's list of refs, in bytes.
const maxAdvertised = 64 << 20

// converse asks the other side for its refs, and requests the changes that decide returns.
func converse(ctx context.Context, r *git.Repository, s *source, tell func(update.Ref, string), decide func(remote map[string]string) []change) (PushResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	asks, ask, err := os.Pipe() // git reads this end itself, so it can end without reading everything
	if err != nil {
		return PushResult{}, fmt.Errorf("making a pipe: %w", err)
	}
	defer asks.Close()
	answers, answer := io.Pipe()
	scheme, _, _ := strings.Cut(s.url, ":")
	c := s.command("remote-"+scheme, "origin", s.url)
	c.Dir, c.Env = r.Dir(), append(slices.Clone(c.Env), "GIT_DIR=.")
	c.Stdin, c.Stdout = asks, answer
	ended := make(chan error, 1)
	go func() {
		err := r.Run(ctx, c)
		answer.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	d := dialogue{ask: ask, answers: bufio.NewScanner(io.LimitReader(answers, maxAdvertised)), secrets: s.secrets, tell: tell}
	result, err := d.hold(decide)
	ask.Close()
	if err != nil {
		stop(err)
	}
	_, _ = io.Copy(io.Discard, answers)
	failed := <-ended
	if err != nil && failed != nil {
		return result, failed // more helpful than the error about the end of the conversation
	}
	return result, err // if a ref is refused, git reports that and then fails
}

// dialogue is a conversation with a remote helper.
type dialogue struct {
	ask     io.Writer
	answers *bufio.Scanner
	secrets []string
	tell    func(update.Ref, string)
}

// hold conducts the conversation from the list of refs to the end of the push.
func (d *dialogue) hold(decide func(remote map[string]string) []change) (PushResult, error) {
	if _, err := io.WriteString(d.ask, "option progress false\noption object-format true\nlist for-push\n"); err != nil {
		return PushResult{}, err
	}
	remote, err := d.list()
	if err != nil {
		return PushResult{}, err
	}
	changes := decide(remote)
	if len(changes) == 0 {
		return PushResult{}, nil
	}
	lines := bufio.NewWriter(d.ask)
	for _, c := range changes {
		_, _ = lines.WriteString(c.command())
	}
	_ = lines.WriteByte('\n')
	if err := lines.Flush(); err != nil {
		return PushResult{}, err
	}
	return d.outcome(changes)
}

// list reads the refs of the other side.
func (d *dialogue) list() (map[string]string, error) {
	remote := map[string]string{}
	for options := 2; d.answers.Scan(); {
		line := d.answers.Text()
		switch {
		case options > 0: // "ok" or "unsupported"
			options--
			continue
		case line == "":
			return remote, nil
		}
		id, name, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, " ") // attributes may follow
		// A name that git would not give to a ref could contain another instruction.
		if object.IsID(id) && (strings.HasPrefix(name, object.BranchPrefix) || strings.HasPrefix(name, object.TagPrefix)) && object.CheckRefName(name) == nil {
			remote[name] = id
		}
	}
	return nil, d.broken()
}

// outcome reads the result of each change. The helper also reports refs that do not change.
func (d *dialogue) outcome(changes []change) (PushResult, error) {
	asked := make(map[string]change, len(changes))
	for _, c := range changes {
		asked[c.Name] = c
	}
	var result PushResult
	for len(asked) > 0 && d.answers.Scan() {
		status, rest, _ := strings.Cut(d.answers.Text(), " ")
		name, reason, _ := strings.Cut(rest, " ")
		c, ok := asked[name]
		if !ok {
			continue
		}
		delete(asked, name)
		why := ""
		if status == "ok" {
			result.Updated++
		} else {
			refused := d.refused(name, reason)
			why = refused.Reason
			result.Refused = append(result.Refused, refused)
		}
		if d.tell != nil {
			d.tell(c.Ref, why)
		}
	}
	if len(asked) > 0 {
		return result, d.broken()
	}
	slices.SortFunc(result.Refused, func(a, b RefusedRef) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// hasDiverged is the reason for refusing a change that would lose something of the other side.
const hasDiverged = "it has diverged"

// maxReason is the maximum length of the other side's message about one ref.
const maxReason = 200

func (d *dialogue) refused(name, reason string) RefusedRef {
	if unquoted, err := strconv.Unquote(reason); err == nil {
		reason = unquoted
	}
	said := &process.Tail{Limit: maxReason}
	_, _ = io.WriteString(said, strings.ReplaceAll(process.Redact(reason, d.secrets), "\n", " "))
	reason = said.String()
	switch reason {
	case "non-fast forward", "fetch first", "needs force", "already exists", "stale info":
		return RefusedRef{Name: name, Reason: hasDiverged, Diverged: true}
	case "":
		reason = "refused"
	}
	return RefusedRef{Name: name, Reason: reason}
}

func (d *dialogue) broken() error {
	if err := d.answers.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("reading what git says: %w", err)
	}
	return errors.New("git ended in the middle of the push")
}
