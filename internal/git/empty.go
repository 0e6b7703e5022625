package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// branchesDir is where the branches are, in the directory of a repository and in the names of refs.
const branchesDir = "refs/heads"

// Empty reports whether the repository has no branch. It looks at files alone (gitrepository-layout(5)) and starts no process.
func (r *Repository) Empty() (bool, error) {
	if err := r.Check(); err != nil {
		return false, err
	}
	loose, err := hasFile(filepath.Join(r.dir, branchesDir))
	if err != nil || loose {
		return false, err
	}
	packed, err := packsRef(filepath.Join(r.dir, "packed-refs"), branchesDir+"/")
	return err == nil && !packed, err
}

// hasFile reports whether there is a file anywhere below a directory. git leaves directories behind.
func hasFile(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
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

// packsRef reports whether a file of packed refs has one in it whose name begins like this. The refs are in the order of their names.
func packsRef(file, prefix string) (bool, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for refs: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		_, name, ok := bytes.Cut(lines.Bytes(), []byte(" "))
		switch {
		case !ok || lines.Bytes()[0] == '#':
		case bytes.HasPrefix(name, []byte(prefix)):
			return true, nil
		case string(name) > prefix:
			return false, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("looking for refs: %w", err)
	}
	return false, nil
}
