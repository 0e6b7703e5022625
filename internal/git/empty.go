package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// branchesDir is the directory of the branches in a repository, and the prefix of their ref names.
const branchesDir = "refs/heads"

// shownEmpty is the maximum number of repositories for which an engine remembers whether they have a branch.
const shownEmpty = 16384

// tick is longer than the timestamp granularity of a file system, within which two changes can have the same time.
const tick = time.Second

// emptiness says whether a repository has no branch. It has the file that changes before that does.
type emptiness struct {
	empty   bool
	path    string
	witness os.FileInfo
}

// stands reports whether the file has not changed.
func (e emptiness) stands() bool {
	now, err := os.Lstat(e.path)
	return err == nil && os.SameFile(now, e.witness) && now.ModTime().Equal(e.witness.ModTime())
}

// Empty reports whether the repository has no branch. It reads only files (gitrepository-layout(5)) and starts no process. As long as a
// repository does not change, it reads the attributes of one file.
func (r *Repository) Empty() (bool, error) {
	if known, ok := r.engine.empties.Get(r.dir); ok && known.(emptiness).stands() {
		return known.(emptiness).empty, nil
	}
	now, err := r.emptiness()
	if err != nil {
		return false, err
	}
	if now.witness != nil {
		r.engine.empties.Add(r.dir, now)
	}
	return now.empty, nil
}

// emptiness looks for branches, and chooses a witness: a file or directory that changes before the answer does.
//
// If the directory of the branches contains a branch directly, or is empty, it is the witness, because a branch is created and removed
// there and only packed afterwards. For a packed branch, the file of packed refs is the witness, because git rewrites it without the
// branch. There is no witness if branches are only in subdirectories, or if the witness changed so recently that it could change again with
// the same timestamp.
func (r *Repository) emptiness() (e emptiness, err error) {
	if err := r.Check(); err != nil {
		return e, err
	}
	settled := time.Now().Add(-tick)
	witness := func(path string, info os.FileInfo) {
		if info != nil && info.ModTime().Before(settled) {
			e.path, e.witness = path, info
		}
	}
	heads, packed := filepath.Join(r.dir, branchesDir), filepath.Join(r.dir, "packed-refs")
	ofHeads, err := lstat(heads)
	if err != nil {
		return e, err
	}
	file, directories, err := hasFile(heads)
	if err != nil || file {
		witness(heads, ofHeads)
		return e, err
	}
	if directories {
		if file, err = hasFileBelow(heads); err != nil || file {
			return e, err
		}
	}
	ofPacked, err := lstat(packed)
	if err != nil {
		return e, err
	}
	found, err := packsRef(packed, branchesDir+"/")
	if err != nil || found {
		witness(packed, ofPacked)
		return e, err
	}
	if e.empty = true; !directories {
		witness(heads, ofHeads)
	}
	return e, nil
}

// lstat returns nil for a path that does not exist.
func lstat(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for refs: %w", err)
	}
	return info, nil
}

// hasFile reports whether a directory directly contains a file, and if not, whether it contains directories.
func hasFile(dir string) (file, directories bool, err error) {
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

// hasFileBelow reports whether a directory or its subdirectories contain a file. git leaves empty directories behind.
func hasFileBelow(dir string) (found bool, err error) {
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

// packsRef reports whether a file of packed refs contains a ref with this prefix. The refs are sorted by name.
func packsRef(file, prefix string) (found bool, err error) {
	err = packedRefs(file, func(name []byte) bool {
		found = bytes.HasPrefix(name, []byte(prefix))
		return !found && string(name) < prefix
	})
	return found, err
}

// packedRefs calls more with the names of the refs in a file of packed refs until more returns false.
func packedRefs(file string, more func(name []byte) bool) error {
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
