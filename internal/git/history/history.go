// Package history reads the commits of repositories: it lists and compares them, and finds out how they are related.
package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Merged reports which of some commits are reachable from another one. Callers must not change the result.
func Merged(ctx context.Context, r *git.Repository, into string, commits ...string) (map[string]bool, error) {
	ids := append([]string{into}, commits...)
	if err := object.CheckIDs(ids...); err != nil {
		return nil, err
	}
	size := func(m map[string]bool) int { return len(m) * 100 }
	return recall.Find(ctx, r.Results(), "finding merged commits", strings.Join(ids, " "), size, func(ctx context.Context) (map[string]bool, error) {
		merged := remaining{}
		for _, id := range commits {
			merged[id] = true
		}
		c := process.In(r.Dir(), "rev-list", "--stdin")
		c.Stdin, c.Stdout = strings.NewReader("^"+strings.Join(ids, "\n")+"\n"), &lines{each: merged.drop}
		err := r.Walking(ctx, func(ctx context.Context) error { return r.Run(ctx, c) })
		return merged, err
	})
}

// Arrived reports which of some commits are reachable from to but not from from. Commits that do not exist are not.
func Arrived(ctx context.Context, r *git.Repository, from, to string, commits ...string) (map[string]bool, error) {
	between, err := revisions(from, to)
	if err != nil {
		return nil, err
	}
	return printed(ctx, r, process.In(r.Dir(), slices.Concat([]string{"rev-list"}, between, []string{"--"})...), commits)
}

// printed reports which of some commits a command prints.
func printed(ctx context.Context, r *git.Repository, c process.Command, commits []string) (map[string]bool, error) {
	asked, found := map[string]bool{}, map[string]bool{}
	for _, id := range commits {
		asked[id] = true
	}
	c.Stdout = &lines{each: func(id []byte) {
		if asked[string(id)] {
			found[string(id)] = true
		}
	}}
	err := r.Walking(ctx, func(ctx context.Context) error { return r.Run(ctx, c) })
	return found, err
}

// Descendants reports which of some commits a commit is reachable from, including itself. It is reachable from none that does not exist. Callers must
// not change the result.
func Descendants(ctx context.Context, r *git.Repository, commit string, of ...string) (map[string]bool, error) {
	if err := object.CheckIDs(append([]string{commit}, of...)...); err != nil {
		return nil, err
	}
	input := "^" + commit + "\n" + strings.Join(of, "\n") + "\n"
	size := func(m map[string]bool) int { return len(m) * 100 }
	// The ids can be many, so their digest stands for them.
	return recall.Find(ctx, r.Results(), "finding descendants", fmt.Sprintf("%x", sha256.Sum256([]byte(input))), size, func(ctx context.Context) (map[string]bool, error) {
		c := process.In(r.Dir(), "rev-list", "--ancestry-path", "--ignore-missing", "--stdin")
		c.Stdin = strings.NewReader(input)
		found, err := printed(ctx, r, c, of)
		found[commit] = true
		return found, err
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
func CommonAncestor(ctx context.Context, r *git.Repository, commit string, others ...string) (string, error) {
	ids := append([]string{commit}, others...)
	if err := object.CheckIDs(ids...); err != nil {
		return "", err
	}
	size := func(id string) int { return len(id) }
	return recall.Find(ctx, r.Results(), "finding a common ancestor", strings.Join(ids, " "), size, func(ctx context.Context) (string, error) {
		out, err := r.WalkOutput(ctx, process.In(r.Dir(), append([]string{"merge-base"}, ids...)...))
		if failed := (*process.Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
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
func Contributors(ctx context.Context, r *git.Repository, commit string) ([]Contributor, error) {
	if err := object.CheckIDs(commit); err != nil {
		return nil, err
	}
	size := func(all []Contributor) (bytes int) {
		for _, c := range all {
			bytes += len(c.Name) + len(c.Email) + 40
		}
		return bytes
	}
	return recall.Find(ctx, r.Results(), "listing contributors", commit, size, func(ctx context.Context) ([]Contributor, error) {
		c := process.In(r.Dir(), "shortlog", "--summary", "--email", commit, "--")
		c.Settings = []process.Setting{{"mailmap.blob", ""}} // the .mailmap of the default branch does not apply to this commit
		found := shortlog{}
		if err := r.WalkLines(ctx, c, found.add); err != nil {
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

// Emails returns the email addresses of the authors and committers of the commits that are reachable from to but not from from, sorted and each
// once. An empty from excludes none. Callers must not change the result.
func Emails(ctx context.Context, r *git.Repository, from, to string) ([]string, error) {
	between, err := revisions(from, to)
	if err != nil {
		return nil, err
	}
	size := func(all []string) (bytes int) {
		for _, email := range all {
			bytes += len(email) + 16
		}
		return bytes
	}
	return recall.Find(ctx, r.Results(), "listing the emails of commits", from+" "+to, size, func(ctx context.Context) ([]string, error) {
		c := process.In(r.Dir(), slices.Concat([]string{"log", "--no-show-signature", "--format=%ae%n%ce"}, between, []string{"--"})...)
		found := map[string]bool{}
		err := r.WalkLines(ctx, c, func(email string) error {
			found[email] = true
			return nil
		})
		return slices.Sorted(maps.Keys(found)), err
	})
}

// revisions returns the arguments for the commits that are reachable from to but not from from, which can be empty.
func revisions(from, to string) ([]string, error) {
	if from == "" {
		return []string{to}, object.CheckIDs(to)
	}
	return []string{to, "^" + from}, object.CheckIDs(to, from)
}

// maxCommits is the maximum number of commits in a list.
const maxCommits = 10_000

// CommitsBetween returns the commits that are reachable from to but not from from, the oldest first; of more than 10,000 commits, the
// newest. An empty from excludes none. It abridges messages of more than 16 KiB, and once all messages exceed 16 MiB, messages of more than
// 1 KiB. Callers must not change the result.
func CommitsBetween(ctx context.Context, r *git.Repository, from, to string) ([]*object.Commit, error) {
	between, err := revisions(from, to)
	if err != nil {
		return nil, err
	}
	args := append([]string{"rev-list", "--reverse", fmt.Sprintf("--max-count=%d", maxCommits)}, between...)
	return recall.Find(ctx, r.Results(), "listing commits", from+" "+to, sizeOfCommits, func(ctx context.Context) ([]*object.Commit, error) {
		out, err := r.WalkOutput(ctx, process.In(r.Dir(), append(args, "--")...))
		if err != nil {
			return nil, err
		}
		return r.ReadCommits(ctx, strings.Fields(string(out)), object.ListedCommits)
	})
}

func sizeOfCommits(all []*object.Commit) (size int) {
	for _, c := range all {
		size += c.Size()
	}
	return size
}
