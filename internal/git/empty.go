package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

// branchesDir is the directory of the branches in a repository, and the prefix of their ref names.
const branchesDir = "refs/heads"

// shownEmpty is the maximum number of repositories for which an engine remembers whether they have a branch.
const shownEmpty = 16384

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
	settled := time.Now().Add(-disk.Tick)
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
	file, directories, err := disk.HasFile(heads)
	if err != nil || file {
		witness(heads, ofHeads)
		return e, err
	}
	if directories {
		if file, err = disk.HasFileBelow(heads); err != nil || file {
			return e, err
		}
	}
	ofPacked, err := lstat(packed)
	if err != nil {
		return e, err
	}
	found, err := disk.PacksRef(packed, branchesDir+"/")
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
