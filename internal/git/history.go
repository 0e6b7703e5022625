package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// walkTimeout limits a command that walks through history, and maxWalk its output, in bytes.
	walkTimeout = time.Minute
	maxWalk     = 64 << 20
	// maxWalks is the maximum number of walks at once, in all repositories: each can use up to one processor and much memory.
	maxWalks = 16
)

// walk runs a command that walks through history, once a slot is free.
func (r *Repository) walk(ctx context.Context, c command) (out []byte, err error) {
	err = r.engine.walking(ctx, func(ctx context.Context) error {
		out, err = r.output(ctx, maxWalk, c)
		return err
	})
	return out, err
}

// walkLines is walk for a command with much output: it reads line by line and keeps nothing.
func (r *Repository) walkLines(ctx context.Context, c command, each func(line string) error) error {
	return r.engine.walking(ctx, func(ctx context.Context) error {
		return r.pipe(ctx, c, func(out io.Reader) error {
			lines, read := bufio.NewScanner(out), 0
			lines.Buffer(nil, maxCommit)
			for lines.Scan() {
				if read += len(lines.Bytes()) + 1; read > maxWalk {
					return &Error{Command: c.args[0], ExitCode: -1, Err: ErrOutputTooLarge}
				}
				if err := each(lines.Text()); err != nil {
					return err
				}
			}
			if errors.Is(lines.Err(), bufio.ErrTooLong) {
				return &Error{Command: c.args[0], ExitCode: -1, Err: ErrOutputTooLarge}
			}
			return lines.Err()
		})
	})
}

// walking calls do, which walks through history, once a slot is free.
func (e *Engine) walking(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, walkTimeout, fmt.Errorf("walking through history took longer than %s: %w", walkTimeout, ErrBusy))
	defer cancel()
	leave, err := enter(ctx, e.walks)
	if err != nil {
		return err
	}
	defer leave()
	return do(ctx)
}

// Merged reports which of some commits are reachable from another one. Callers must not change the result.
func (r *Repository) Merged(ctx context.Context, into string, commits ...string) (map[string]bool, error) {
	ids := append([]string{into}, commits...)
	if err := checkIDs(ids...); err != nil {
		return nil, err
	}
	size := func(m map[string]bool) int { return len(m) * 100 }
	return recall(ctx, r, "finding merged commits", strings.Join(ids, " "), size, func(ctx context.Context) (map[string]bool, error) {
		merged := remaining{}
		for _, id := range commits {
			merged[id] = true
		}
		c := r.command("rev-list", "--stdin")
		c.stdin, c.stdout = strings.NewReader("^"+strings.Join(ids, "\n")+"\n"), &lines{each: merged.drop}
		err := r.engine.walking(ctx, func(ctx context.Context) error { return r.run(ctx, c) })
		return merged, err
	})
}

// remaining are the commits that rev-list has not printed.
type remaining map[string]bool

func (r remaining) drop(id []byte) { delete(r, string(id)) }

// lines is a writer that passes on each line and keeps none.
type lines struct {
	each  func(line []byte)
	begun []byte
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		l.begun = append(l.begun, line...)
		if !ended {
			return len(p), nil
		}
		l.each(l.begun)
		l.begun, rest = l.begun[:0], after
	}
}

// CommonAncestor returns the best common ancestor of a commit and the others together, as `git merge-base` finds it, or "" if
// there is none.
func (r *Repository) CommonAncestor(ctx context.Context, commit string, others ...string) (string, error) {
	ids := append([]string{commit}, others...)
	if err := checkIDs(ids...); err != nil {
		return "", err
	}
	size := func(id string) int { return len(id) }
	return recall(ctx, r, "finding a common ancestor", strings.Join(ids, " "), size, func(ctx context.Context) (string, error) {
		out, err := r.walk(ctx, r.command(append([]string{"merge-base"}, ids...)...))
		if failed := (*Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
			return "", nil
		}
		return strings.TrimSpace(string(out)), err
	})
}

// Contributor is an author, identified by email address.
type Contributor struct {
	// Name is the name in most of the author's commits.
	Name, Email string
	Commits     int
}

// Contributors returns the authors of a commit and its ancestors, sorted by email address. Callers must not change the result.
func (r *Repository) Contributors(ctx context.Context, commit string) ([]Contributor, error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	size := func(all []Contributor) (bytes int) {
		for _, c := range all {
			bytes += len(c.Name) + len(c.Email) + 40
		}
		return bytes
	}
	return recall(ctx, r, "listing contributors", commit, size, func(ctx context.Context) ([]Contributor, error) {
		c := r.command("shortlog", "--summary", "--email", commit, "--")
		c.settings = []setting{{"mailmap.blob", ""}} // the .mailmap of the default branch does not apply to this commit
		found := shortlog{}
		if err := r.walkLines(ctx, c, found.add); err != nil {
			return nil, err
		}
		return found.contributors(), nil
	})
}

// shortlog has the authors by email address.
type shortlog map[string]*author

type author struct {
	Contributor
	// most is the number of commits with the name.
	most int
}

// add parses a line of the form "<commits>\t<name> <<email>>".
func (found shortlog) add(line string) error {
	number, who, ok := strings.Cut(line, "\t")
	commits, err := strconv.Atoi(strings.TrimSpace(number))
	at := strings.LastIndex(who, "<")
	if !ok || err != nil || at < 0 || !strings.HasSuffix(who, ">") {
		return fmt.Errorf("git shortlog: unexpected line %.100q", line)
	}
	name, email := strings.TrimSpace(who[:at]), who[at+1:len(who)-1]
	a := found[email]
	if a == nil {
		a = &author{Contributor: Contributor{Email: email}}
		found[email] = a
	}
	if a.Commits += commits; commits > a.most {
		a.Name, a.most = name, commits
	}
	return nil
}

// contributors returns the authors, sorted by email address.
func (found shortlog) contributors() []Contributor {
	all := make([]Contributor, 0, len(found))
	for _, a := range found {
		all = append(all, a.Contributor)
	}
	slices.SortFunc(all, func(a, b Contributor) int { return strings.Compare(a.Email, b.Email) })
	return all
}

const (
	// maxCommits is the maximum number of commits in a list.
	maxCommits = 10_000
	// commitBatch is the number of commits that are requested at a time: this many ids fit into a pipe.
	commitBatch = 256
)

// CommitsBetween returns the commits that are reachable from to but not from from, the oldest first; of more than 10,000 commits, the
// newest. It abridges messages of more than 16 KiB, and once all messages exceed 16 MiB, messages of more than 1 KiB. Callers must not
// change the result.
func (r *Repository) CommitsBetween(ctx context.Context, from, to string) ([]*Commit, error) {
	if err := checkIDs(from, to); err != nil {
		return nil, err
	}
	return recall(ctx, r, "listing commits", from+" "+to, sizeOfCommits, func(ctx context.Context) ([]*Commit, error) {
		out, err := r.walk(ctx, r.command("rev-list", "--reverse", fmt.Sprintf("--max-count=%d", maxCommits), to, "^"+from, "--"))
		if err != nil {
			return nil, err
		}
		return r.readCommits(ctx, strings.Fields(string(out)), listedCommits)
	})
}

func sizeOfCommits(all []*Commit) (size int) {
	for _, c := range all {
		size += c.size()
	}
	return size
}

// readCommits reads many commits in one request. It keeps what is within the limits.
func (r *Repository) readCommits(ctx context.Context, ids []string, limits commitLimits) ([]*Commit, error) {
	all := make([]*Commit, 0, len(ids))
	err := r.engine.readers.use(ctx, r, func(from *reader) error {
		all = all[:0]
		text := 0
		for batch := range slices.Chunk(ids, commitBatch) {
			if err := from.ask("contents", batch...); err != nil {
				return err
			}
			for _, id := range batch {
				c, err := from.commit(id)
				if err != nil {
					return err
				}
				limits.trim(c, text)
				text += len(c.Message)
				all = append(all, c)
			}
		}
		return nil
	})
	return all, err
}

// commit reads the answer for a commit.
func (r *reader) commit(id string) (*Commit, error) {
	o, err := r.answer(id)
	if err != nil {
		return nil, err
	}
	if o.Type != "commit" {
		return nil, fmt.Errorf("%s is a %s: %w", id, o.Type, ErrObjectNotFound)
	}
	content, err := r.beginning(o, maxCommit)
	if err != nil {
		return nil, err
	}
	c, err := parseCommit(id, content)
	if err == nil && o.Size > maxCommit {
		c.Message += ellipsis
	}
	return c, err
}
