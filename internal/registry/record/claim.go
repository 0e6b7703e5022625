package record

import (
	"context"
	"errors"
	"time"

	"github.com/uptrace/bun"
)

const (
	// Writing is how much of a claim must be left when its holder writes: far longer than a write takes and than clocks differ.
	Writing = 30 * time.Second
	// Committing is how much must be left when its holder commits the upload, which can take as long as its content is read.
	Committing = lease
	// spare is how much longer a claim lasts than its holder asks, so that not every write extends it.
	spare = 30 * time.Second
)

// ErrBusy says that another request is writing to an upload. One could commit it while the other one adds to what has become the blob of all projects.
var ErrBusy = errors.New("another request is writing to this upload: ask for its state when that has ended, and go on from there")

// Claim lets one request write to an upload, and no other of any process. It ends by itself if its process is lost.
type Claim struct {
	store *Store
	name  string
	until time.Time
}

// Claim claims an upload for a write. The error is ErrBusy while another request holds it.
func (s *Store) Claim(ctx context.Context, upload string) (*Claim, error) {
	now := s.clock.Now().UTC()
	c := &Claim{store: s, name: Upload(upload), until: precise(now.Add(Writing + spare))}
	held, err := s.hold(ctx, "claiming an upload", c.name, now, c.until)
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, ErrBusy
	}
	return c, nil
}

// Hold makes sure that the claim lasts for some time. The error is ErrBusy if it has ended and another request has claimed the upload since.
func (c *Claim) Hold(ctx context.Context, least time.Duration) error {
	now := c.store.clock.Now().UTC()
	if c.until.Sub(now) >= least {
		return nil
	}
	until := precise(now.Add(least + spare))
	err := c.store.db.Write(ctx, "extending the claim on an upload", func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewUpdate().Model((*blob)(nil)).Set("sweeping_until = ?", until).
			Where("digest = ?", c.name).Where("sweeping_until = ?", c.until).Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err == nil && n == 0 {
			err = ErrBusy
		}
		return err
	})
	if err == nil {
		c.until = until
	}
	return err
}

// Release ends the claim.
func (c *Claim) Release(ctx context.Context) error {
	_, err := c.store.release(ctx, "releasing an upload", c.name, c.until)
	return err
}
