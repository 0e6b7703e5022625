package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
)

// branchesDir is the directory of the branches in a repository, and the prefix of their ref names.
const branchesDir = "refs/heads"

// emptiness says whether a repository has no branch. It has the file that changes before that does.
type emptiness struct {
	empty   bool
	path    string
	witness disk.Stamp
}

// stands reports whether the file has not changed.
func (e *emptiness) stands() bool {
	now, err := disk.Look(e.path)
	return err == nil && now == e.witness
}

// Empty reports whether the repository has no branch. It reads only files (gitrepository-layout(5)) and starts no process. As long as a
// repository does not change, a handle reads the attributes of one file when it is asked again.
func (r *Repository) Empty() (bool, error) {
	if known := r.known.Load(); known != nil && known.stands() {
		return known.empty, nil
	}
	now, err := r.emptiness()
	if err != nil {
		return false, err
	}
	if now.path != "" {
		r.known.Store(&now)
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
	witness := func(path string, is disk.Stamp) {
		if is != (disk.Stamp{}) && is.Modified().Before(settled) {
			e.path, e.witness = path, is
		}
	}
	heads, packed := filepath.Join(r.dir, branchesDir), filepath.Join(r.dir, "packed-refs")
	ofHeads, err := look(heads)
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
	ofPacked, err := look(packed)
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

// look returns the zero Stamp for a path that does not exist.
func look(path string) (disk.Stamp, error) {
	is, err := disk.Look(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return is, fmt.Errorf("looking for refs: %w", err)
	}
	return is, nil
}
