package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// walkTimeout is for a command that walks through history, and maxWalk how much it may say, in bytes.
	walkTimeout = time.Minute
	maxWalk     = 64 << 20
)

// walk runs a command that walks through history.
func (r *Repository) walk(ctx context.Context, c command) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, walkTimeout, fmt.Errorf("walking through history took longer than %s", walkTimeout))
	defer cancel()
	return r.output(ctx, maxWalk, c)
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

// Contributor is an author, by e-mail address.
type Contributor struct {
	// Name is the one that most of the commits have.
	Name, Email string
	Commits     int
}

// Contributors returns the authors of a commit and all before it, in the order of their e-mail addresses. Nobody changes
// what it returns.
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
		c.settings = []setting{{"mailmap.blob", ""}} // that of the default branch says nothing of this commit
		out, err := r.walk(ctx, c)
		if err != nil {
			return nil, err
		}
		return parseShortlog(out)
	})
}

// parseShortlog reads lines of "<commits>\t<name> <<email>>".
func parseShortlog(out []byte) ([]Contributor, error) {
	found := map[string]*Contributor{}
	most := map[string]int{}
	for line := range bytes.Lines(out) {
		number, who, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		commits, err := strconv.Atoi(strings.TrimSpace(number))
		at := strings.LastIndex(who, "<")
		if !ok || err != nil || at < 0 || !strings.HasSuffix(who, ">") {
			return nil, fmt.Errorf("git shortlog: unexpected line %.100q", line)
		}
		name, email := strings.TrimSpace(who[:at]), who[at+1:len(who)-1]
		c := found[email]
		if c == nil {
			c = &Contributor{Email: email}
			found[email] = c
		}
		if c.Commits += commits; commits > most[email] {
			c.Name, most[email] = name, commits
		}
	}
	all := make([]Contributor, 0, len(found))
	for _, c := range found {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Contributor) int { return strings.Compare(a.Email, b.Email) })
	return all, nil
}
