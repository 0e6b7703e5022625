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

// Log says which commits are listed, and in which order: the newest first, if nothing else is said.
type Log struct {
	// Tips are the ids of commits, or of tags on them, that the list begins at. What is reachable from Without is left out.
	Tips, Without []string
	// Apart leaves out what is reachable from both tips, of which there are two.
	Apart bool
	// Path leaves those that have changed a file, whatever it was called before, or something in a directory. Empty for all.
	Path string
	// Author leaves those in whose author's name and address the text occurs.
	Author string
	// Since and Until leave those that were committed then or later, and then or earlier. The zero Time is no bound.
	Since, Until time.Time
	// FirstParent goes from each merge to its first parent only.
	FirstParent bool
	// Topo shows no commit before all of its children, and one line of history after the other.
	Topo bool
	// Skip is how many commits are passed over, and Limit how many are listed then.
	Skip, Limit int
}

// Range returns the log of a revision, as Commit takes it, or of a range of them: "a..b" is what b has and a does not have, and
// "a...b" what only one of them has. One that is left out is HEAD. The error is ErrRefNotFound.
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

// Log lists commits, and reports whether more would come. Messages are abridged as those of CommitsBetween. Nobody changes what it
// returns.
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

// key tells one log from another. There may be many tips.
func (l Log) key() string {
	args, skip := l.args()
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %d %d %t %q\n", args, skip, l.Limit, l.Apart, l.Without)
	for _, tip := range l.Tips {
		_, _ = io.WriteString(sum, tip)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// args are those of a git log that says ids. How many of them are to be skipped is left to the reader where git follows
// renames: it would count what it does not show.
func (l Log) args() (args []string, skip int) {
	// A .mailmap of the default branch says nothing of these commits.
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

// date is a time in whole seconds, as commits are dated, in the form that git takes past the year 2038, too.
func date(t time.Time) string { return fmt.Sprintf("@%d +0000", max(t.Unix(), 0)) }

// tips are the lines that say where to begin and what to leave out.
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

// logged returns the ids of the commits on a page, and of the one after that.
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

// LastCommit returns the id of the newest commit, from commit on, that has changed what is at a path. It is ErrObjectNotFound where
// nothing has ever been there.
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

// Lines counts what a commit has changed.
type Lines struct{ Added, Removed int }

var shortStat = regexp.MustCompile(`^ \d+ files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?$`)

// CountLines returns how many lines each of the commits has added and removed since its first parent. Nobody changes what it
// returns.
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

// parseShortStats reads ids, each followed by an empty line and the sums, unless nothing has changed.
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

// RefsWith lists the refs below the prefixes from which a commit is reachable, in the order of their names.
func (r *Repository) RefsWith(ctx context.Context, commit string, prefixes ...string) ([]Ref, error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	return r.listRefs(ctx, append([]string{"--contains=" + commit, "--"}, prefixes...)...)
}
