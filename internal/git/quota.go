package git

import (
	"context"
	"path/filepath"
	"slices"
	"time"
)

// MaxPush returns the maximum size of the objects of one push, in bytes. 0 means no limit.
func (r *Repository) MaxPush() int64 { return r.engine.limits.Push }

// CheckPush returns a *LimitError if a push exceeds the limits of the server: if unpacked objects are too large, or the repository would
// be. A push that only removes refs always passes, so that a full repository can be made smaller.
func (r *Repository) CheckPush(ctx context.Context, q *Quarantine, updates ...RefUpdate) error {
	if q == nil {
		return r.checkRemoval(ctx, updates)
	}
	l := r.engine.limits
	if err := r.admit(ctx, admission{
		objects: filepath.Join("objects", q.name), each: l.Push, together: l.PushUnpacked,
		large: "the server takes in one push",
		much:  limitf("The objects of the push have more than the %s together that the server takes in one push when they are unpacked.", FormatBytes(l.PushUnpacked)),
	}); err != nil {
		return err
	}
	limit := l.Repository
	if limit == 0 {
		return nil
	}
	n, err := size(ctx, r.dir) // includes the quarantine
	if err != nil {
		return err
	}
	r.remeasured(n)
	if n > limit {
		return overfullRepository(limit)
	}
	return nil
}

// checkRemoval returns a *LimitError if the repository is full and the updates do anything other than remove existing refs.
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

// checkRoom returns a *LimitError if the repository is full, or was a moment ago.
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

// measured is the measured size of a repository.
type measured struct {
	bytes int64
	at    time.Time
}

const (
	measuring = "measuring"
	// measureAge is how long a measurement is valid for writes that add little: measuring takes as long as several small writes.
	measureAge = 10 * time.Second
)

func (r *Repository) remeasured(n int64) measured {
	m := measured{bytes: n, at: time.Now()}
	remember(r, measuring, "", m, 100)
	return m
}
