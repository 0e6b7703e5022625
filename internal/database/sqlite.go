package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite" // the driver of database/sql, in pure Go
)

// openSQLite opens a file by two pools: a single writer, and readers, who never wait for it.
func openSQLite(ctx context.Context, path string, migrations []fs.FS) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	directory := filepath.Dir(path)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the activity database: %w", err)
	}
	// Two processes that make the same file at once would get in each other's way.
	unlock, err := lockDirectory(ctx, directory)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of the activity database: %w", err)
	}
	defer unlock()
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("creating the activity database: %w", err)
	}
	d := &DB{
		name:  "the SQLite file " + path,
		write: sqlitePool(path, 1, url.Values{"_txlock": {"immediate"}}),
		read:  sqlitePool(path, max(4, runtime.GOMAXPROCS(0)), url.Values{"_pragma": {"query_only(1)"}}),
	}
	if err := migrate(ctx, d.write.DB, goose.DialectSQLite3, migrations); err != nil {
		return nil, errors.Join(Failed(ctx, "opening "+d.name, err), d.Close())
	}
	return d, nil
}

// busyTimeout is longer than any call: the call decides how long it waits for another process.
const busyTimeout = "busy_timeout(10000)"

func sqlitePool(path string, connections int, extra url.Values) *bun.DB {
	query := url.Values{"_pragma": append([]string{
		busyTimeout, "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)",
	}, extra["_pragma"]...)}
	for key, values := range extra {
		if key != "_pragma" {
			query[key] = values
		}
	}
	source := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
	connector, err := sqlite.NewConnector(source)
	if err != nil {
		panic(err) // the source is well formed
	}
	pool := sql.OpenDB(preparing{connector})
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return bun.NewDB(pool, sqlitedialect.New())
}

// makeFile creates the file if it is missing, readable only by its owner. It does not even open an existing file, because closing it would
// release the locks that this process holds on it.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// lockDirectory waits for the lock of a directory, which the kernel releases when the process ends, in any way.
func lockDirectory(ctx context.Context, directory string) (unlock func(), err error) {
	file, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, file.Close())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		}
	}
}
