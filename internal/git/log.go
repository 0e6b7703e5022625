package git

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
// the commits that only one of them has. An omitted side is HEAD. The error is ErrRefNotFound.
func (r *Repository) Range(ctx context.Context, text string) (l Log, err error) {
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
		if ids[i], err = r.Commit(ctx, cmp.Or(revision, "HEAD")); err != nil {
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

// Log lists commits, and reports whether more would follow. Messages are abridged as in CommitsBetween. Callers must not change the result.
func (r *Repository) Log(ctx context.Context, l Log) (commits []*Commit, more bool, err error) {
	if err := errors.Join(checkIDs(l.Tips...), checkIDs(l.Without...)); err != nil {
		return nil, false, err
	}
	if len(l.Tips) == 0 || l.Limit <= 0 || l.Skip < 0 || l.Skip > math.MaxInt32-l.Limit {
		return nil, false, nil
	}
	if _, ok := CleanPath(l.Path); !ok {
		return nil, false, nil
	}
	type page struct {
		commits []*Commit
		more    bool
	}
	size := func(p page) int { return sizeOfCommits(p.commits) }
	p, err := recall(ctx, r, "listing commits of a log", l.key(), size, func(ctx context.Context) (page, error) {
		ids, err := r.logged(ctx, l)
		if err != nil {
			return page{}, err
		}
		p := page{more: len(ids) > l.Limit}
		p.commits, err = r.readCommits(ctx, ids[:min(len(ids), l.Limit)], listedCommits)
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
	if path, _ := CleanPath(l.Path); path != "" {
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
func (r *Repository) logged(ctx context.Context, l Log) (ids []string, err error) {
	args, skip := l.args()
	c := r.command(args...)
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	c.stdin = strings.NewReader(l.tips())
	err = r.engine.walking(ctx, func(ctx context.Context) error {
		return r.pipe(ctx, c, func(out io.Reader) error {
			for lines := bufio.NewScanner(out); len(ids) <= l.Limit; {
				if !lines.Scan() {
					return lines.Err()
				}
				if skip > 0 {
					skip--
					continue
				}
				id := lines.Text()
				if !IsObjectID(id) {
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
// ErrObjectNotFound if nothing ever existed there.
func (r *Repository) LastCommit(ctx context.Context, commit, path string) (string, error) {
	clean, ok := CleanPath(path)
	if err := checkIDs(commit); err != nil {
		return "", err
	} else if !ok {
		return "", fmt.Errorf("path %.100q: %w", path, ErrObjectNotFound)
	}
	size := func(id string) int { return len(id) }
	return recall(ctx, r, "finding the last commit of a path", commit+":"+clean, size, func(ctx context.Context) (string, error) {
		c := r.command("rev-list", "--max-count=1", commit, "--", clean)
		c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
		out, err := r.walk(ctx, c)
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(string(out))
		if !IsObjectID(id) {
			return "", fmt.Errorf("path %.100q: %w", path, ErrObjectNotFound)
		}
		return id, nil
	})
}

// Lines are the numbers of added and removed lines of a commit.
type Lines struct{ Added, Removed int }

var shortStat = regexp.MustCompile(`^ \d+ files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?$`)

// CountLines returns the numbers of lines that each of the commits has added and removed since its first parent. Callers must not change
// the result.
func (r *Repository) CountLines(ctx context.Context, commits ...string) (map[string]Lines, error) {
	if err := checkIDs(commits...); err != nil || len(commits) == 0 {
		return nil, err
	}
	ids := strings.Join(commits, "\n")
	size := func(all map[string]Lines) int { return 150 * len(all) }
	return recall(ctx, r, "counting changed lines", ids, size, func(ctx context.Context) (map[string]Lines, error) {
		c := r.command("log", "--stdin", "--no-walk=unsorted", "--diff-merges=first-parent", "--shortstat", "--format=%H", "--find-renames",
			"-l"+renameLimit, "--no-show-signature", "--no-notes", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--")
		c.stdin = strings.NewReader(ids + "\n")
		out, err := r.walk(ctx, c)
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
		case IsObjectID(line):
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

// RefsWith lists the refs below the prefixes from which a commit is reachable, sorted by name.
func (r *Repository) RefsWith(ctx context.Context, commit string, prefixes ...string) ([]Ref, error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	return r.listRefs(ctx, append([]string{"--contains=" + commit, "--"}, prefixes...)...)
}
