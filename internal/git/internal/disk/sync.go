package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// syncsAtOnce is the number of files that are synced at once. File systems complete the syncs of several files together.
const syncsAtOnce = 16

// SyncTree makes the names of all files below dir durable, and the contents that git does not sync itself: everything except objects.
func SyncTree(dir string) error {
	var syncs errgroup.Group
	syncs.SetLimit(syncsAtOnce)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && (!entry.Type().IsRegular() || filepath.Base(filepath.Dir(path)) == "pack") {
			return nil
		}
		syncs.Go(func() error { return SyncDir(path) })
		return nil
	})
	return errors.Join(err, syncs.Wait())
}

// SyncDir syncs a file or directory.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}
