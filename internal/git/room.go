package git

import (
	"context"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
)

// MaxPush returns the maximum size of the objects of one push, in bytes. 0 means no limit.
func (r *Repository) MaxPush() int64 { return r.engine.limits.Push }

func overfullRepository(limit int64) error {
	return process.Limitf("The repository would have more than the %s that the server allows a repository on disk. Nothing can be added to it.", process.FormatBytes(limit))
}

// Measure returns a *LimitError if the repository has more than it may have on disk. Its size is remembered for CheckRoom.
func (r *Repository) Measure(ctx context.Context) error {
	limit := r.engine.limits.Repository
	if limit == 0 {
		return nil
	}
	n, err := disk.Size(ctx, r.dir)
	if err != nil {
		return err
	}
	if r.remeasured(n); n > limit {
		return overfullRepository(limit)
	}
	return nil
}

// CheckRoom returns a *LimitError if the repository is full, or was a moment ago.
func (r *Repository) CheckRoom(ctx context.Context) error {
	limit := r.engine.limits.Repository
	if limit == 0 {
		return nil
	}
	known, ok := recall.Known[measured](r.Results(), measuring, "")
	if !ok || time.Since(known.at) > measureAge {
		n, err := disk.Size(ctx, r.dir)
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
	// measureAge is the time for which a measurement is valid for writes that add little: measuring takes as long as several small writes.
	measureAge = 10 * time.Second
)

func (r *Repository) remeasured(n int64) measured {
	m := measured{bytes: n, at: time.Now()}
	recall.Keep(r.Results(), measuring, "", m, 100)
	return m
}
