package git

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// layout is an empty repository as git has made one, in the order of the paths and without HEAD: another one of the same kind is made
// after it, which takes no process.
type layout []layoutEntry

// layoutEntry is a directory or a file.
type layoutEntry struct {
	path string
	mode fs.FileMode
	text []byte
}

// layoutKind is what an empty repository depends on, apart from HEAD: git asks the file system what that can do.
type layoutKind struct{ storage, objectFormat string }

// readLayout reads that of a repository that git has just made.
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
		return nil, fmt.Errorf("reading what git has made of %s: %w", dir, err)
	}
	return l, nil
}

// check fails for a layout that lacks something without which there is no repository. Somebody may take away the directory while it is
// listed, as Repository.stage says.
func (l layout) check() error {
	for _, path := range []string{"config", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if !slices.ContainsFunc(l, func(one layoutEntry) bool { return one.path == path }) {
			return fmt.Errorf("it has no %s: %w", path, ErrNotRepository)
		}
	}
	return nil
}

// write makes an empty repository in a directory that is not there.
func (l layout) write(dir, defaultBranch string) error {
	for _, one := range l {
		var err error
		if path := filepath.Join(dir, one.path); one.mode.IsDir() {
			err = os.Mkdir(path, one.mode.Perm())
		} else {
			err = os.WriteFile(path, one.text, one.mode.Perm())
		}
		if err != nil {
			return fmt.Errorf("making the repository %s: %w", dir, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/"+defaultBranch+"\n"), 0o644); err != nil {
		return fmt.Errorf("making the repository %s: %w", dir, err)
	}
	return nil
}
