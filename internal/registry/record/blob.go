package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/forgeplane/forgeplane/internal/database"
)

// blob says when the content with a digest was last needed: a layer, a configuration or a manifest.
type blob struct {
	bun.BaseModel `bun:"table:container_blobs"`

	// Digest is the name of an Upload while a request has a Claim on it.
	Digest  string    `bun:"digest,pk"`
	Touched time.Time `bun:"touched_at"`
	// Sweeping is the time until which a process holds the content: a garbage collection that removes it, or a request that writes to the upload. It is
	// in milliseconds since 1970 by the clock of the database, so the clocks of processes do not matter.
	Sweeping int64 `bun:"sweeping_until,nullzero"`
}

const (
	// removal is the maximum time for the removal of a blob, and patience the time for which a client waits for it.
	removal, patience = 30 * time.Second, time.Minute
	// lease is the time after which a process that removes a blob counts as lost. It is far longer than a removal: a process that was paused
	// and goes on would remove what a client has pushed meanwhile.
	lease = 10 * time.Minute
	// glance is the time between two looks at a blob that is being removed.
	glance = 50 * time.Millisecond
	// touchedAtOnce is the maximum number of digests that one statement records.
	touchedAtOnce = 500
)

// ErrSweeping says that a garbage collection has been removing a blob for too long.
var ErrSweeping = errors.New("a garbage collection is removing a layer of the image: try again in some minutes")

// Touch records that a client needs the contents with some digests now: no garbage collection that began later, or within the grace period,
// removes them. If one is being removed at this moment, Touch waits until it is gone, so a check that follows sees whether it exists. The error is
// ErrSweeping if that takes too long.
func (s *Store) Touch(ctx context.Context, digests ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrSweeping)
	defer cancel()
	// Two statements that lock the same rows must do so in the same order.
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(digests))), touchedAtOnce) {
		for {
			touched, err := s.touch(ctx, some)
			if err != nil {
				return err
			}
			if touched {
				break
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(glance):
			}
		}
	}
	return nil
}

// touch reports false if one of the contents is being removed.
func (s *Store) touch(ctx context.Context, digests []string) (touched bool, err error) {
	now := s.clock.Now().UTC()
	rows := make([]blob, len(digests))
	for i, d := range digests {
		rows[i] = blob{Digest: d, Touched: now}
	}
	err = s.db.Write(ctx, "recording the use of an image", func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewInsert().Model(&rows).
			On("CONFLICT (digest) DO UPDATE").Set("touched_at = EXCLUDED.touched_at").Set("sweeping_until = NULL").
			Where("?TableAlias.sweeping_until IS NULL OR ?TableAlias.sweeping_until < ?", database.Now(db)).Returning("NULL").Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		touched = n == int64(len(digests))
		return err
	})
	return touched, err
}

// Touched reports whether a client has needed the content with a digest since a time.
func (s *Store) Touched(ctx context.Context, digest string, since time.Time) (touched bool, err error) {
	err = s.db.Read(ctx, "looking up the use of an image", func(ctx context.Context, db bun.IDB) error {
		touched, err = db.NewSelect().Model((*blob)(nil)).Where("digest = ?", digest).Where("touched_at >= ?", since.UTC()).Exists(ctx)
		return err
	})
	return touched, err
}

// errLost says that the removal of a blob took so long that clients could count on the blob again.
var errLost = errors.New("the removal took so long that clients may have pushed the same content meanwhile: check the images that were pushed in the last minutes")

// Sweep calls remove, within the given time, for the content with a digest, unless a client has needed it since a time. It reports whether it
// did. While remove runs, clients who need the content wait. Two processes do not remove the same content at once. After an error, it is unknown
// whether the content will still be removed, so clients wait for some minutes.
func (s *Store) Sweep(ctx context.Context, digest string, since time.Time, remove func(ctx context.Context) error) (swept bool, err error) {
	until, err := s.hold(ctx, "removing an unused blob", digest, since, lease)
	if err != nil || until == 0 {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := remove(limited); err != nil {
		return false, fmt.Errorf("removing %s: %w", digest, err)
	}
	held, err := s.release(context.WithoutCancel(ctx), "removing an unused blob", digest, until)
	if err == nil && !held {
		err = fmt.Errorf("removing %s: %w", digest, errLost)
	}
	return true, err
}

// hold lets the caller alone change a content for some time, unless a client has needed it since a time, or another process holds it. It returns
// the end of that time, by the clock of the database, or 0 if the caller must not change it.
func (s *Store) hold(ctx context.Context, attempt, digest string, since time.Time, lasting time.Duration) (until int64, err error) {
	var held []int64
	err = s.db.Write(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		now := database.Now(db)
		_, err := db.NewInsert().Model(&blob{Digest: digest, Touched: time.Unix(0, 0).UTC()}).
			Value("sweeping_until", "? + ?", now, lasting.Milliseconds()).
			On("CONFLICT (digest) DO UPDATE").Set("sweeping_until = EXCLUDED.sweeping_until").
			Where("?TableAlias.touched_at < ?", since.UTC()).
			Where("?TableAlias.sweeping_until IS NULL OR ?TableAlias.sweeping_until < ?", now).
			Returning("sweeping_until").Exec(ctx, &held)
		return err
	})
	if err != nil || len(held) == 0 {
		return 0, err
	}
	return held[0], nil
}

// release ends a hold, and reports whether no other process had taken it over.
func (s *Store) release(ctx context.Context, attempt, digest string, until int64) (held bool, err error) {
	err = s.db.Write(ctx, attempt, func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewDelete().Model((*blob)(nil)).Where("digest = ?", digest).Where("sweeping_until = ?", until).Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		held = n > 0
		return err
	})
	return held, err
}

// Forget removes what is recorded of contents that no client has needed since a time, and of repositories that were deleted before it. It keeps
// the records of contents that are being removed at this moment.
func (s *Store) Forget(ctx context.Context, since time.Time) error {
	return s.db.Atomically(ctx, "forgetting the uses of images", func(ctx context.Context, db bun.IDB) error {
		if _, err := db.NewDelete().Model((*release)(nil)).Where("released_at < ?", since.UTC()).Exec(ctx); err != nil {
			return err
		}
		_, err := db.NewDelete().Model((*blob)(nil)).Where("touched_at < ?", since.UTC()).
			Where("sweeping_until IS NULL OR sweeping_until < ?", database.Now(db)).Exec(ctx)
		return err
	})
}
