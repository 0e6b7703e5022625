package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// layout is an empty repository as git has created it, sorted by path and without HEAD. It is a template for repositories of the same kind,
// which need no process then.
type layout []layoutEntry

// layoutEntry is a directory or a file.
type layoutEntry struct {
	path string
	mode fs.FileMode
	text []byte
}

// layoutKind has everything that an empty repository depends on, except HEAD. It includes the storage, because git checks the abilities of
// the file system.
type layoutKind struct{ storage, objectFormat string }

// readLayout reads the layout of a repository that git has just created.
func readLayout(dir string) (l layout, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "HEAD" {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		one := layoutEntry{path: name, mode: info.Mode()}
		if !entry.IsDir() {
			if one.text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		l = append(l, one)
		return nil
	})
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the repository that git created at %s: %w", dir, err)
	}
	return l, nil
}

// check fails if a layout lacks something that every repository needs. Another process can remove the directory while it is read; see
// Repository.stage.
func (l layout) check() error {
	for _, path := range []string{"config", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if !slices.ContainsFunc(l, func(one layoutEntry) bool { return one.path == path }) {
			return fmt.Errorf("it has no %s: %w", path, ErrNotRepository)
		}
	}
	return nil
}

// write creates an empty repository in a directory that does not exist.
func (l layout) write(dir, defaultBranch string) error {
	for _, one := range l {
		var err error
		if path := filepath.Join(dir, one.path); one.mode.IsDir() {
			err = os.Mkdir(path, one.mode.Perm())
		} else {
			err = os.WriteFile(path, one.text, one.mode.Perm())
		}
		if err != nil {
			return fmt.Errorf("creating the repository %s: %w", dir, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/"+defaultBranch+"\n"), 0o644); err != nil {
		return fmt.Errorf("creating the repository %s: %w", dir, err)
	}
	return nil
}
