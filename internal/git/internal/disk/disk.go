// Package disk reads and measures the files of repositories, without a git process. Other processes can change the files meanwhile.
package disk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Size returns the size of a directory on disk, in bytes.
func Size(ctx context.Context, dir string) (int64, error) {
	var total int64
	err := Walk(ctx, dir, func(_ string, info fs.FileInfo) error {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * 512 // the unit of stat(2), which does not depend on the file system
		} else {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// Walk visits everything below a directory that others can write to. It ignores entries that disappear.
func Walk(ctx context.Context, dir string, visit func(path string, info fs.FileInfo) error) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = entry.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return visit(path, info)
	})
	if err != nil {
		return fmt.Errorf("walking through %s: %w", dir, err)
	}
	return nil
}

// Temporary reports whether a path in a repository is one that git normally removes itself. No ref name has such an ending.
func Temporary(path string) bool {
	name := filepath.Base(path)
	if strings.HasPrefix(path, "objects/") && (strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-")) {
		return true
	}
	return strings.HasSuffix(name, ".lock") || path == "packed-refs.new"
}

// HasFile reports whether a directory directly contains a file, and if not, whether it contains directories.
func HasFile(dir string) (file, directories bool, err error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("looking for refs: %w", err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(64)
		for _, entry := range entries {
			if entry.Type().IsRegular() {
				return true, directories, nil
			}
			directories = true
		}
		if errors.Is(err, io.EOF) {
			return false, directories, nil
		}
		if err != nil {
			return false, directories, fmt.Errorf("looking for refs: %w", err)
		}
	}
}

// HasFileBelow reports whether a directory or its subdirectories contain a file. git leaves empty directories behind.
func HasFileBelow(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed in the meantime
			return nil
		case err != nil:
			return err
		case entry.Type().IsRegular():
			found = true
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("looking for refs: %w", err)
	}
	return found, nil
}

// PacksRef reports whether a file of packed refs contains a ref with this prefix. The refs are sorted by name.
func PacksRef(file, prefix string) (found bool, err error) {
	err = PackedRefs(file, func(name []byte) bool {
		found = bytes.HasPrefix(name, []byte(prefix))
		return !found && string(name) < prefix
	})
	return found, err
}

// PackedRefs calls more with the names of the refs in a file of packed refs until more returns false.
func PackedRefs(file string, more func(name []byte) bool) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for refs: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, name, ok := bytes.Cut(lines.Bytes(), []byte(" "))
		if ok && lines.Bytes()[0] != '#' && !more(name) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("looking for refs: %w", err)
	}
	return nil
}

// Unused reports whether a repository has neither a ref nor an object nor a quarantine.
func Unused(dir string) (bool, error) {
	if none, err := Refless(dir); err != nil || !none {
		return false, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "objects"))
	if err != nil {
		return false, fmt.Errorf("looking for objects: %w", err)
	}
	for _, e := range entries {
		const fanOut = 2 // the length of the names of directories of loose objects
		switch {
		case e.Name() == "info":
		case e.Name() != "pack" && len(e.Name()) != fanOut:
			return false, nil
		default:
			if objects, err := HasFileBelow(filepath.Join(dir, "objects", e.Name())); err != nil || objects {
				return false, err
			}
		}
	}
	return true, nil
}

// Refless reports whether a repository has no ref. Git packs a ref before it removes its file.
func Refless(dir string) (bool, error) {
	if refs, err := HasFileBelow(filepath.Join(dir, "refs")); err != nil || refs {
		return false, err
	}
	refs, err := PacksRef(filepath.Join(dir, "packed-refs"), "refs/")
	return err == nil && !refs, err
}
