package database

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

// transaction is one that is under way.
type transaction struct {
	of *DB
	tx bun.Tx
	// ended are told when it has ended.
	ended []func()
}

// within is the key of the transaction of a context.
type within struct{}

func (d *DB) transaction(ctx context.Context) *transaction {
	if t, ok := ctx.Value(within{}).(*transaction); ok && t.of == d {
		return t
	}
	return nil
}

// Read runs queries, within Limit. The attempt is what an error says was attempted, as in "reading the subscriptions of user 7". In a
// transaction it reads what the transaction has written.
func (d *DB) Read(ctx context.Context, attempt string, do func(context.Context, bun.IDB) error) error {
	return d.call(ctx, attempt, d.read, do)
}

// Write runs a statement that changes something, within Limit: for several that belong together there is Atomically. In a transaction it
// is part of that.
func (d *DB) Write(ctx context.Context, attempt string, do func(context.Context, bun.IDB) error) error {
	return d.call(ctx, attempt, d.write, do)
}

func (d *DB) call(ctx context.Context, attempt string, pool *bun.DB, do func(context.Context, bun.IDB) error) error {
	ctx, cancel := Limited(ctx)
	defer cancel()
	if t := d.transaction(ctx); t != nil {
		if err := do(ctx, t.tx); err != nil {
			return fmt.Errorf("%s: %w", attempt, err) // the transaction says the rest
		}
		return nil
	}
	if err := do(ctx, pool); err != nil {
		return Failed(ctx, attempt, err)
	}
	return nil
}

// Atomically runs do in a transaction, within Limit. Everything that is read and written with the context of do belongs to the transaction,
// in every aggregate. It is rolled back if do fails. A nested transaction joins the outer one. Goroutines must not share the context.
func (d *DB) Atomically(ctx context.Context, attempt string, do func(context.Context, bun.IDB) error) error {
	if d.transaction(ctx) != nil {
		return d.call(ctx, attempt, d.write, do)
	}
	ctx, cancel := Limited(ctx)
	defer cancel()
	t := &transaction{of: d}
	defer func() {
		for _, f := range t.ended {
			f()
		}
	}()
	err := d.write.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		t.tx = tx
		return do(context.WithValue(ctx, within{}, t), tx)
	})
	if err != nil {
		return Failed(ctx, attempt, err)
	}
	return nil
}

// Afterwards calls f when the transaction of ctx has ended in any way, or at once if there is none. Others can read the writes only then,
// so f must not discard cached data earlier.
func (d *DB) Afterwards(ctx context.Context, f func()) {
	if t := d.transaction(ctx); t != nil {
		t.ended = append(t.ended, f)
		return
	}
	f()
}
