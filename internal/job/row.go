package job

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/uptrace/bun" // builds queries for both database engines
	"github.com/uptrace/bun/dialect"

	"github.com/forgeplane/forgeplane/internal/database"
)

//go:embed migrations
var migrations embed.FS

// Migrations returns the migrations of the table of queues, for database.Open.
func Migrations() fs.FS { return migrations }

// row is a task in the database. Its times are milliseconds since 1970 by the database's clock, so the clocks of processes do not matter.
type row struct {
	bun.BaseModel `bun:"table:jobs"`

	Queue   string `bun:"queue,pk"`
	Key     string `bun:"key,pk"`
	Tenant  string `bun:"tenant"`
	Payload []byte `bun:"payload"`
	// Due is the time from which the task can be claimed. While it has an owner, that is the end of the lease.
	Due int64 `bun:"due"`
	// Again is the time at which the task is due once more, if it was added while it had an owner.
	Again *int64 `bun:"again"`
	// Attempts is the number of claims since the last success, without released ones.
	Attempts int    `bun:"attempts"`
	Failure  string `bun:"failure"`
	Progress string `bun:"progress"`
	// Owner is the queue of the process that runs the task; empty while the task waits. Number is the number of the last claim, and
	// increases with each claim of the queue.
	Owner  string `bun:"owner"`
	Number int64  `bun:"number"`
	// Cancelled says that the owner's run must end.
	Cancelled bool `bun:"cancelled"`

	// Now is the time of a query that selects it.
	Now int64 `bun:"now,scanonly"`
}

// locking makes a query lock its rows, unless the database allows only one writer at a time anyway.
func locking(q *bun.SelectQuery, how string) *bun.SelectQuery {
	if q.Dialect().Name() == dialect.PG {
		return q.For(how)
	}
	return q
}

// add writes a task that is due after a delay.
func (q *Queue) add(ctx context.Context, t Task, delay time.Duration) error {
	const statement = `INSERT INTO jobs (queue, key, tenant, payload, due) VALUES (?, ?, ?, ?, ? + ?)
ON CONFLICT (queue, key) DO UPDATE SET tenant = EXCLUDED.tenant, payload = EXCLUDED.payload,
	due = CASE WHEN jobs.owner = '' AND EXCLUDED.due < jobs.due THEN EXCLUDED.due ELSE jobs.due END,
	again = CASE WHEN jobs.owner <> '' AND (jobs.again IS NULL OR EXCLUDED.due < jobs.again) THEN EXCLUDED.due ELSE jobs.again END`
	return q.db.Write(ctx, "adding "+q.quoted(t.Key), func(ctx context.Context, db bun.IDB) error {
		payload := append([]byte{}, t.Payload...) // nil would become NULL
		_, err := db.NewRaw(statement, q.options.Name, t.Key, t.Tenant.String(), payload, database.Now(db), delay.Milliseconds()).Exec(ctx)
		return err
	})
}

// claim leases a task, or returns nil if none is due. It chooses the next tenant after the given one, and of that tenant the task that has
// been due longest. It skips the given tenants and keys. The run covers everything that was added so far.
func (q *Queue) claim(ctx context.Context, after string, tenants, keys []string) (*row, error) {
	const statement = `UPDATE jobs SET owner = ?, due = ? + ?, attempts = attempts + 1, cancelled = (cancelled AND again IS NULL), again = NULL
WHERE queue = ? AND key = COALESCE((?), (?)) RETURNING *`
	var claimed []*row
	err := q.db.Atomically(ctx, "claiming a task of the queue "+q.options.Name, func(ctx context.Context, db bun.IDB) error {
		first := func() *bun.SelectQuery {
			oldest := db.NewSelect().Model((*row)(nil)).Column("key").Where("queue = ?", q.options.Name).Where("due <= ?", database.Now(db))
			if len(tenants) > 0 {
				oldest.Where("tenant NOT IN ?", bun.Tuple(tenants))
			}
			if len(keys) > 0 {
				oldest.Where("key NOT IN ?", bun.Tuple(keys))
			}
			return locking(oldest.Order("tenant", "due").Limit(1), "UPDATE SKIP LOCKED")
		}
		err := db.NewRaw(statement, q.owner, database.Now(db), q.options.Lease.Milliseconds(), q.options.Name,
			first().Where("tenant > ?", after), first()).Scan(ctx, &claimed)
		if err != nil || len(claimed) == 0 {
			return err
		}
		return number(ctx, db, claimed[0])
	})
	if err != nil || len(claimed) == 0 {
		return nil, err
	}
	return claimed[0], nil
}

// number gives a claimed task the next number of its queue. Concurrent claims wait for the transaction, which is short.
func number(ctx context.Context, db bun.IDB, r *row) error {
	const statement = `INSERT INTO job_numbers (queue, number) VALUES (?, 1)
ON CONFLICT (queue) DO UPDATE SET number = job_numbers.number + 1 RETURNING number`
	if err := db.NewRaw(statement, r.Queue).Scan(ctx, &r.Number); err != nil {
		return err
	}
	_, err := db.NewUpdate().Model(r).Column("number").WherePK().Exec(ctx)
	return err
}

// confirm returns ErrLost if the lease of a claim is lost or its task is cancelled. In a transaction, the result holds until the
// transaction ends.
func (q *Queue) confirm(ctx context.Context, claimed *row) error {
	return q.db.Read(ctx, "confirming the lease of "+q.quoted(claimed.Key), func(ctx context.Context, db bun.IDB) error {
		var number int64
		err := locking(db.NewSelect().Model((*row)(nil)).Column("number").Where("queue = ?", claimed.Queue).Where("key = ?", claimed.Key).
			Where("owner = ?", claimed.Owner).Where("number = ?", claimed.Number).Where("NOT cancelled"), "UPDATE").Scan(ctx, &number)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrLost
		}
		return err
	})
}

// renew extends a lease and writes the progress of the work. It reports false if the lease is lost or the task is cancelled.
func (q *Queue) renew(ctx context.Context, r *row, progress string) (renewed bool, err error) {
	err = q.db.Write(ctx, "renewing the lease of "+q.quoted(r.Key), func(ctx context.Context, db bun.IDB) error {
		result, err := db.NewUpdate().Model(r).Set("due = ? + ?", database.Now(db), q.options.Lease.Milliseconds()).Set("progress = ?", progress).
			WherePK().Where("owner = ?", r.Owner).Where("number = ?", r.Number).Where("NOT cancelled").Exec(ctx)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		renewed = n == 1
		return err
	})
	return renewed, err
}

// outcome is the result of a run.
type outcome struct {
	// err is the error of a failed run.
	err error
	// released says that the run was interrupted, so another run can begin at once.
	released bool
	progress string
}

// settle records the outcome of a run and releases the lease. It reports false, and changes nothing, if the lease is lost.
func (q *Queue) settle(ctx context.Context, claimed *row, o outcome) (mine bool, err error) {
	err = q.db.Atomically(ctx, "recording the outcome of "+q.quoted(claimed.Key), func(ctx context.Context, tx bun.IDB) error {
		var r row
		err := locking(tx.NewSelect().Model(&r).ColumnExpr("*, ? AS now", database.Now(tx)).Where("queue = ?", claimed.Queue).
			Where("key = ?", claimed.Key).Where("owner = ?", claimed.Owner).Where("number = ?", claimed.Number), "UPDATE").Scan(ctx)
		if mine = err == nil; errors.Is(err, sql.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if remains := r.conclude(o, q.options.Retry); !remains {
			_, err = tx.NewDelete().Model(&r).WherePK().Exec(ctx)
			return err
		}
		_, err = tx.NewUpdate().Model(&r).WherePK().
			Column("due", "again", "attempts", "failure", "progress", "owner", "cancelled").Exec(ctx)
		return err
	})
	return mine && err == nil, err
}

// conclude updates a row from an outcome. It reports false if nothing is left to do.
func (r *row) conclude(o outcome, retry func(int, error) time.Duration) (remains bool) {
	again, over := r.Again, r.Cancelled || o.err == nil
	if over && again == nil {
		return false
	}
	r.Again, r.Owner, r.Cancelled = nil, "", false
	switch {
	case over:
		r.Due, r.Attempts, r.Failure, r.Progress = *again, 0, "", ""
	case o.released:
		r.Due, r.Attempts, r.Progress = r.Now, r.Attempts-1, o.progress
	default:
		r.Due = r.Now + retry(r.Attempts-1, o.err).Milliseconds()
		r.Failure, r.Progress = bounded(o.err.Error(), maxText), o.progress
		if again != nil {
			r.Due = min(r.Due, *again)
		}
	}
	return true
}

// look reads a row. It returns nil if the row does not exist.
func (q *Queue) look(ctx context.Context, key string) (*row, error) {
	var r row
	err := q.db.Read(ctx, "looking at "+q.quoted(key), func(ctx context.Context, db bun.IDB) error {
		return db.NewSelect().Model(&r).ColumnExpr("*, ? AS now", database.Now(db)).Where("queue = ?", q.options.Name).Where("key = ?", key).Scan(ctx)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &r, nil
}

// state returns the state of the row's task.
func (r *row) state() State {
	left := time.Duration(r.Due-r.Now) * time.Millisecond
	switch {
	case r.Cancelled && r.Again == nil:
		return State{}
	case r.Owner != "" && left > 0 && !r.Cancelled:
		return State{Phase: Running, Progress: r.Progress}
	case r.Owner == "" && r.Failure != "" && left > 0:
		return State{Phase: Done, Progress: r.Progress, Err: errors.New(r.Failure), Retry: left}
	default:
		return State{Phase: Waiting, Progress: r.Progress}
	}
}

// forget removes a waiting task, or cancels the run of a task that has an owner.
func (q *Queue) forget(ctx context.Context, key string) error {
	return q.db.Atomically(ctx, "forgetting "+q.quoted(key), func(ctx context.Context, tx bun.IDB) error {
		r := &row{Queue: q.options.Name, Key: key, Cancelled: true}
		// The first statement locks the row, so its owner does not change before the second one.
		_, err := tx.NewUpdate().Model(r).Column("cancelled", "again", "attempts", "failure", "progress").WherePK().Exec(ctx)
		if err != nil {
			return err
		}
		_, err = tx.NewDelete().Model(r).WherePK().Where("owner = ''").Exec(ctx)
		return err
	})
}

func (q *Queue) quoted(key string) string {
	return fmt.Sprintf("the task %q of the queue %s", key, q.options.Name)
}
