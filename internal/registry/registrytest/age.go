package registrytest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Age makes everything in a directory look as if nothing has changed it for a time.
func Age(tb testing.TB, directory string, by time.Duration) {
	tb.Helper()
	past := time.Now().Add(-by)
	err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, past, past))
	})
	if err != nil {
		tb.Fatal(err)
	}
}
