package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of a SQLite file, as it is at one moment, to a new file that only its owner can read. Other processes can use the database
// meanwhile.
func Backup(ctx context.Context, from, to string) (err error) {
	from, err = filepath.Abs(from)
	if err == nil {
		_, err = os.Stat(from)
	}
	if err != nil {
		return fmt.Errorf("finding the database: %w", err)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("creating the backup: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	source := sqlitePool(from, 1, nil)
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return Failed(ctx, "copying the SQLite file "+from, err)
	}
	return file.Sync() // SQLite does not sync it
}
