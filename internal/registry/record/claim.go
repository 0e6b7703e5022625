package record

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

const (
	// Writing is the minimum remaining time of a claim when its holder writes: far longer than a write takes.
	Writing = 30 * time.Second
	// Committing is the minimum remaining time while its holder commits the upload. It can take as long as its content is read, and the
	// database can be out of reach meanwhile.
	Committing = lease
	// spare is the additional time of a claim, so that not every write extends it.
	spare = 30 * time.Second
	// renewals is the number of extensions of a claim in the time for which it must last.
	renewals = 20
)

// ErrBusy says that another request is writing to an upload. One could commit it while the other one adds to what has become the blob of all projects.
var ErrBusy = errors.New("another request is writing to this upload: ask for its state when that has ended, and go on from there")

// Claim lets one request write to an upload, and no other of any process. It ends by itself if its process is lost.
type Claim struct {
	store *Store
	name  string
	// until is the end of the claim by the clock of the database, and ends the same by that of the process, or earlier.
	until int64
	ends  time.Time
}

// Claim claims an upload for a write. The error is ErrBusy while another request holds it.
func (s *Store) Claim(ctx context.Context, upload string) (*Claim, error) {
	now := s.clock.Now()
	c := &Claim{store: s, name: Upload(upload), ends: now.Add(Writing + spare)}
	var err error
	if c.until, err = s.hold(ctx, "claiming an upload", c.name, now, Writing+spare); err != nil {
		return nil, err
	}
	if c.until == 0 {
		return nil, ErrBusy
	}
	return c, nil
}

// Hold makes sure that the claim lasts for some time. The error is ErrBusy if it has ended and another request has claimed the upload since.
func (c *Claim) Hold(ctx context.Context, least time.Duration) error {
	now := c.store.clock.Now()
	if c.ends.Sub(now) >= least {
		return nil
	}
	var until []int64
	err := c.store.db.Write(ctx, "extending the claim on an upload", func(ctx context.Context, db bun.IDB) error {
		_, err := db.NewUpdate().Model((*blob)(nil)).Set("sweeping_until = ? + ?", database.Now(db), (least+spare).Milliseconds()).
			Where("digest = ?", c.name).Where("sweeping_until = ?", c.until).Returning("sweeping_until").Exec(ctx, &until)
		return err
	})
	if err == nil && len(until) == 0 {
		err = ErrBusy
	}
	if err == nil {
		c.until, c.ends = until[0], now.Add(least+spare)
	}
	return err
}

// Keep calls do, and makes the claim last for some time longer than do takes. If that fails, it ends the context of do, and returns the reason: ErrBusy
// if another request has claimed the upload.
func (c *Claim) Keep(ctx context.Context, least time.Duration, do func(ctx context.Context) error) error {
	if err := c.Hold(ctx, least); err != nil {
		return err
	}
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var renewing sync.WaitGroup
	var lost error
	renewing.Go(func() {
		tick := time.NewTicker(least / renewals)
		defer tick.Stop()
		for {
			select {
			case <-done: // do can outlive its context
				return
			case <-tick.C:
			}
			err := c.Hold(context.WithoutCancel(ctx), least)
			if errors.Is(err, ErrBusy) || err != nil && c.ends.Sub(c.store.clock.Now()) < Writing {
				lost = err
				cancel(err)
				return
			}
		}
	})
	err := func() error {
		defer func() { close(done); renewing.Wait() }() // also if it panics
		return do(limited)
	}()
	if err != nil && lost != nil {
		return lost
	}
	return err
}

// Release ends the claim.
func (c *Claim) Release(ctx context.Context) error {
	_, err := c.store.release(ctx, "releasing an upload", c.name, c.until)
	return err
}
