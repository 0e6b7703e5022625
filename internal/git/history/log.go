package history

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
	"github.com/forgeplane/forgeplane/internal/git/refs"
)

// Log selects and orders commits. By default, the newest come first.
type Log struct {
	// Tips are the ids of the commits, or of tags on them, at which the list begins. Commits that are reachable from Without are excluded.
	Tips, Without []string
	// Apart excludes commits that are reachable from both tips. There must be two tips.
	Apart bool
	// Path selects commits that have changed a file, under any of its names, or something in a directory. Empty selects all.
	Path string
	// Author selects commits whose author's name and address contain the text.
	Author string
	// Since and Until select commits by committer date, both inclusive. The zero Time means no limit.
	Since, Until time.Time
	// FirstParent follows only the first parent of each merge.
	FirstParent bool
	// Topo lists no commit before all its children, and lines of history one after the other.
	Topo bool
	// Skip is the number of commits to skip, and Limit the maximum number of commits to list after that.
	Skip, Limit int
}

// Range returns the log of a revision in the syntax of Commit, or of a range: "a..b" are the commits of b that a does not have, and "a...b"
// the commits that only one of them has. An omitted side is HEAD. The error is refs.ErrNotFound.
func Range(ctx context.Context, r *git.Repository, text string) (l Log, err error) {
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		from, to = "", text
	} else if rest, three := strings.CutPrefix(to, "."); three {
		to, l.Apart = rest, true
	}
	ids := make([]string, 2)
	for i, revision := range []string{to, from} {
		if i == 1 && !isRange {
			break
		}
		if ids[i], err = refs.Commit(ctx, r, cmp.Or(revision, "HEAD")); err != nil {
			return Log{}, err
		}
	}
	switch {
	case l.Apart:
		l.Tips = []string{ids[1], ids[0]}
	case isRange:
		l.Tips, l.Without = ids[:1], ids[1:]
	default:
		l.Tips = ids[:1]
	}
	return l, nil
}

// List lists commits, and reports whether more would follow. Messages are abridged as in CommitsBetween. Callers must not change the result.
func List(ctx context.Context, r *git.Repository, l Log) (commits []*object.Commit, more bool, err error) {
	if err := errors.Join(object.CheckIDs(l.Tips...), object.CheckIDs(l.Without...)); err != nil {
		return nil, false, err
	}
	if len(l.Tips) == 0 || l.Limit <= 0 || l.Skip < 0 || l.Skip > math.MaxInt32-l.Limit {
		return nil, false, nil
	}
	if _, ok := object.CleanPath(l.Path); !ok {
		return nil, false, nil
	}
	type page struct {
		commits []*object.Commit
		more    bool
	}
	size := func(p page) int { return sizeOfCommits(p.commits) }
	p, err := recall.Find(ctx, r.Results(), "listing commits of a log", l.key(), size, func(ctx context.Context) (page, error) {
		ids, err := logged(ctx, r, l)
		if err != nil {
			return page{}, err
		}
		p := page{more: len(ids) > l.Limit}
		p.commits, err = r.ReadCommits(ctx, ids[:min(len(ids), l.Limit)], object.ListedCommits)
		return p, err
	})
	return p.commits, p.more, err
}

// key distinguishes logs. There can be many tips.
func (l Log) key() string {
	args, skip := l.args()
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %d %d %t %q\n", args, skip, l.Limit, l.Apart, l.Without)
	for _, tip := range l.Tips {
		_, _ = io.WriteString(sum, tip)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// args returns the arguments of a git log that prints ids. If git follows renames, the reader must skip commits, because git would also
// count commits that it does not print.
func (l Log) args() (args []string, skip int) {
	// The .mailmap of the default branch does not apply to these commits.
	args = []string{"log", "--stdin", "--format=%H", "--no-mailmap", "--no-show-signature", "--no-notes"}
	option := func(set bool, text string) {
		if set {
			args = append(args, text)
		}
	}
	option(l.Topo, "--topo-order")
	option(l.FirstParent, "--first-parent")
	option(!l.Since.IsZero(), "--since="+date(l.Since.Add(time.Second-1)))
	option(!l.Until.IsZero(), "--until="+date(l.Until))
	option(l.Author != "", "--fixed-strings")
	option(l.Author != "", "--author="+l.Author)
	if path, _ := object.CleanPath(l.Path); path != "" {
		return append(args, "--follow", "-l"+renameLimit, "--", path), l.Skip
	}
	return append(args, fmt.Sprintf("--skip=%d", l.Skip), fmt.Sprintf("--max-count=%d", l.Limit+1), "--"), 0
}

// date formats a time in whole seconds, like commit dates, in the form that git accepts for times after 2038 too.
func date(t time.Time) string { return fmt.Sprintf("@%d +0000", max(t.Unix(), 0)) }

// tips returns the input lines for the tips and the exclusions.
func (l Log) tips() string {
	between := "\n"
	if l.Apart {
		between = "..."
	}
	text := strings.Join(l.Tips, between) + "\n"
	for _, id := range l.Without {
		text += "^" + id + "\n"
	}
	return text
}

// logged returns the ids of the commits on a page, and of the first commit after it.
func logged(ctx context.Context, r *git.Repository, l Log) (ids []string, err error) {
	args, skip := l.args()
	c := process.In(r.Dir(), args...)
	c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	c.Stdin = strings.NewReader(l.tips())
	err = r.Walking(ctx, func(ctx context.Context) error {
		return r.Pipe(ctx, c, func(out io.Reader) error {
			for lines := bufio.NewScanner(out); len(ids) <= l.Limit; {
				if !lines.Scan() {
					return lines.Err()
				}
				if skip > 0 {
					skip--
					continue
				}
				id := lines.Text()
				if !object.IsID(id) {
					return fmt.Errorf("git log: unexpected line %.100q", id)
				}
				ids = append(ids, id)
			}
			return nil
		})
	})
	return ids, err
}

// LastCommit returns the id of the newest commit, starting at commit, that has changed the content of a path. The error is
// git.ErrObjectNotFound if nothing ever existed there.
func LastCommit(ctx context.Context, r *git.Repository, commit, path string) (string, error) {
	clean, ok := object.CleanPath(path)
	if err := object.CheckIDs(commit); err != nil {
		return "", err
	} else if !ok {
		return "", fmt.Errorf("path %.100q: %w", path, git.ErrObjectNotFound)
	}
	size := func(id string) int { return len(id) }
	return recall.Find(ctx, r.Results(), "finding the last commit of a path", commit+":"+clean, size, func(ctx context.Context) (string, error) {
		c := process.In(r.Dir(), "rev-list", "--max-count=1", commit, "--", clean)
		c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
		out, err := r.WalkOutput(ctx, c)
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(string(out))
		if !object.IsID(id) {
			return "", fmt.Errorf("path %.100q: %w", path, git.ErrObjectNotFound)
		}
		return id, nil
	})
}

// Lines are the numbers of added and removed lines of a commit.
type Lines struct{ Added, Removed int }

var shortStat = regexp.MustCompile(`^ \d+ files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?$`)

// CountLines returns the numbers of lines that each of the commits has added and removed since its first parent. Callers must not change
// the result.
func CountLines(ctx context.Context, r *git.Repository, commits ...string) (map[string]Lines, error) {
	if err := object.CheckIDs(commits...); err != nil || len(commits) == 0 {
		return nil, err
	}
	ids := strings.Join(commits, "\n")
	size := func(all map[string]Lines) int { return 150 * len(all) }
	return recall.Find(ctx, r.Results(), "counting changed lines", ids, size, func(ctx context.Context) (map[string]Lines, error) {
		c := process.In(r.Dir(), "log", "--stdin", "--no-walk=unsorted", "--diff-merges=first-parent", "--shortstat", "--format=%H", "--find-renames",
			"-l"+renameLimit, "--no-show-signature", "--no-notes", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--")
		c.Stdin = strings.NewReader(ids + "\n")
		out, err := r.WalkOutput(ctx, c)
		if err != nil {
			return nil, err
		}
		return parseShortStats(string(out))
	})
}

// parseShortStats parses ids, each followed by an empty line and the sums if anything has changed.
func parseShortStats(out string) (map[string]Lines, error) {
	all := map[string]Lines{}
	id := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		sums := shortStat.FindStringSubmatch(line)
		switch {
		case object.IsID(line):
			id = line
			all[id] = Lines{}
		case line == "":
		case sums == nil || id == "":
			return nil, fmt.Errorf("git log: unexpected line %.100q", line)
		default:
			added, _ := strconv.Atoi(sums[1])
			removed, _ := strconv.Atoi(sums[2])
			all[id] = Lines{added, removed}
		}
	}
	return all, nil
}
