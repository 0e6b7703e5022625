package disk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncTree makes the names of all files below dir durable, and the contents that git does not sync itself: everything except objects.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() && (!entry.Type().IsRegular() || filepath.Base(filepath.Dir(path)) == "pack") {
			return nil
		}
		return SyncDir(path)
	})
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
