package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxPush is how many bytes the objects of one push may have. 0 is no limit.
func (r *Repository) MaxPush() int64 { return r.engine.limits.Push }

// CheckPush returns a *LimitError where a push brings more than the server allows: objects that are too large once they are unpacked, or
// more than the repository may have. A push that does nothing but remove refs passes, so that a full repository can be made smaller.
func (r *Repository) CheckPush(ctx context.Context, q *Quarantine, updates ...RefUpdate) error {
	if q == nil {
		return r.checkRemoval(ctx, updates)
	}
	if err := r.checkObjects(ctx, q); err != nil {
		return err
	}
	limit := r.engine.limits.Repository
	if limit == 0 {
		return nil
	}
	n, err := size(ctx, r.dir) // the quarantine is in it
	if err != nil {
		return err
	}
	r.remeasured(n)
	if n > limit {
		return overfullRepository(limit)
	}
	return nil
}

// checkRemoval returns a *LimitError where the repository is full, and the updates do anything but remove refs that are there.
func (r *Repository) checkRemoval(ctx context.Context, updates []RefUpdate) error {
	full := r.checkRoom(ctx)
	if LimitReached(full) == "" {
		return full
	}
	names := make([]string, len(updates))
	for i, u := range updates {
		if names[i] = u.Ref; u.New != "" && !IsZeroID(u.New) || CheckRefName(u.Ref) != nil {
			return full
		}
	}
	found, err := r.Objects(ctx, names...)
	if err != nil {
		return err
	}
	if len(found) == 0 || slices.ContainsFunc(found, func(o Object) bool { return o.ID == "" }) {
		return full
	}
	return nil
}

func overfullRepository(limit int64) error {
	return limitf("The repository would have more than the %s that the server allows a repository on disk. Nothing can be added to it.", FormatBytes(limit))
}

// checkRoom returns a *LimitError where the repository has as much as it may have, or had a moment ago.
func (r *Repository) checkRoom(ctx context.Context) error {
	limit := r.engine.limits.Repository
	if limit == 0 {
		return nil
	}
	known, ok := recalled[measured](r, measuring, "")
	if !ok || time.Since(known.at) > measureAge {
		n, err := size(ctx, r.dir)
		if err != nil {
			return err
		}
		known = r.remeasured(n)
	}
	if known.bytes > limit {
		return overfullRepository(limit)
	}
	return nil
}

// measured is how large a repository was.
type measured struct {
	bytes int64
	at    time.Time
}

const (
	measuring = "measuring"
	// measureAge is how long a measure is good for what adds little: to measure takes as long as several small writes.
	measureAge = 10 * time.Second
)

func (r *Repository) remeasured(n int64) measured {
	m := measured{bytes: n, at: time.Now()}
	remember(r, measuring, "", m, 100)
	return m
}

// mostExpansion is how many times larger something can be than what zlib makes of it.
const mostExpansion = 1032

// checkObjects looks for objects that are too large once they are unpacked, one of them or all together. Deltas have no bound in how
// much they unpack to.
func (r *Repository) checkObjects(ctx context.Context, q *Quarantine) error {
	each, together := r.engine.limits.Push, r.engine.limits.PushUnpacked
	if each == 0 && together == 0 {
		return nil
	}
	bytes, packed := int64(0), false
	err := walk(ctx, filepath.Join(r.dir, "objects", q.name), func(path string, info fs.FileInfo) error {
		if !info.IsDir() {
			bytes += info.Size()
			packed = packed || strings.HasSuffix(path, ".pack")
		}
		return nil
	})
	if err != nil {
		return err
	}
	fits := func(limit int64) bool { return limit == 0 || bytes <= limit/mostExpansion }
	if !packed && fits(each) && fits(together) {
		return nil
	}
	c := r.command("cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectname) %(objectsize)")
	c.env = append(c.env, "GIT_OBJECT_DIRECTORY=objects/"+q.name)
	return r.pipe(ctx, c, func(out io.Reader) error {
		sum := int64(0)
		for lines := bufio.NewScanner(out); ; {
			if !lines.Scan() {
				return lines.Err()
			}
			id, text, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("git cat-file: unexpected line %.100q", lines.Bytes())
			}
			if each > 0 && n > each {
				return limitf("The object %s has %d bytes when it is unpacked, more than the %s that the server takes in one push.", id, n, FormatBytes(each))
			}
			if sum += min(n, math.MaxInt64-sum); together > 0 && sum > together {
				return limitf("The objects of the push have more than the %s together that the server takes in one push when they are unpacked.", FormatBytes(together))
			}
		}
	})
}
