// Package activity keeps what happens in the forge, as opposed to what is declared of it: data that is written often and
// belongs in no custom resource, such as who subscribes to what and when a token was last used.
//
// It lives in a relational database: SQLite, embedded, for a single process, or PostgreSQL for any number of replicas. A
// Store is safe for use by several goroutines.
package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun" // builds queries for either engine
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// limit is how long one call may take.
const limit = 5 * time.Second

var errSlow = fmt.Errorf("the database did not answer within %s", limit)

// Options say what to open.
type Options struct {
	// Database is the URL of a PostgreSQL database, as in postgres://forgeplane:password@host/forgeplane, or the path of a
	// file, which makes it SQLite. The file is made, with its directory, where it is missing.
	Database string
	// Clock is the real one when it is nil.
	Clock clock.PassiveClock
}

// Store is the activity database. Its errors say what failed in words for people, and never hold the password.
type Store struct {
	database
	clock      clock.PassiveClock
	subscribed *memory[subscriber, sets.Set[types.UID]]
	uses       marks
}

// Open connects to the database and brings its tables up to date; several processes may do so at once. The caller closes
// the store.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{clock: o.Clock}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	d, err := openDatabase(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	s.database = d
	s.subscribed = newMemory(s.clock, s.readSubscribed)
	s.uses = newMarks()
	return s, nil
}

// Close ends all connections. Calls under way fail.
func (s *Store) Close() error { return s.close() }

// Check returns an error that names the database if it does not answer.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if _, err := s.read.NewSelect().Model((*use)(nil)).Exists(ctx); err != nil {
		return failed(ctx, "reaching "+s.name, err)
	}
	return nil
}

// database is a connected engine.
type database struct {
	// name is what people know it by, without a password.
	name string
	// SQLite has one writer at a time, who must not wait for readers to finish; for PostgreSQL they are the same.
	read, write *bun.DB
}

func (d database) close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	// The last connection to a SQLite file tidies up, and has to be one that may write.
	return errors.Join(d.read.Close(), d.write.Close())
}

// limited returns a context for one call.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errSlow)
}

// failed says what was attempted, and why the context ended if it did: the engines only say that something did.
func failed(ctx context.Context, attempt string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("activity database: %s: %w", attempt, err)
}
