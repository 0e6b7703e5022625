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

// branchesDir is where the branches are, in the directory of a repository and in the names of refs.
const branchesDir = "refs/heads"

// shownEmpty bounds of how many repositories an engine remembers whether they have a branch.
const shownEmpty = 16384

// tick is longer than the time in which a file system may give two changes the same time.
const tick = time.Second

// emptiness is whether a repository has no branch, and the file that changes before that does.
type emptiness struct {
	empty   bool
	path    string
	witness os.FileInfo
}

// stands reports whether the file is as it was.
func (e emptiness) stands() bool {
	now, err := os.Lstat(e.path)
	return err == nil && os.SameFile(now, e.witness) && now.ModTime().Equal(e.witness.ModTime())
}

// Empty reports whether the repository has no branch. It looks at files alone (gitrepository-layout(5)) and starts no process. As
// long as a repository stays as it is, one look at one file is enough.
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

// emptiness looks for branches. The directory of the branches is the witness where it has one right in it, or nothing at all: a branch
// is made and removed there, and only packed afterwards. The file of packed refs is the witness of a packed branch: it is
// written anew without it. There is no witness where the branches are in directories of that directory alone, or of what has
// changed so lately that it may change once more at the same time.
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

// lstat returns nil for what does not exist.
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

// hasFile reports whether there is a file right in a directory, and otherwise whether there are directories.
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

// hasFileBelow reports whether there is a file anywhere below a directory. git leaves directories behind.
func hasFileBelow(dir string) (found bool, err error) {
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
func packsRef(file, prefix string) (found bool, err error) {
	err = packedRefs(file, func(name []byte) bool {
		found = bytes.HasPrefix(name, []byte(prefix))
		return !found && string(name) < prefix
	})
	return found, err
}

// packedRefs calls more with the names of the refs in a file of packed refs, as long as it says so.
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
