package refs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/disk"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
)

// maxWitnesses is the maximum number of directories that are checked to notice that a ref has changed. With more of them, asking git is
// faster.
const maxWitnesses = 100

// knownRefs has the known refs of a repository. It is immutable.
type knownRefs struct {
	// witnesses change with every change of a ref, by any process: git changes a ref by creating a file in one of these directories.
	witnesses []witness
	// seen is the time at which the first witness was read.
	seen time.Time
	// lists are the results of git since the witnesses last changed, and head is the HEAD that was read; nil if neither was requested.
	lists map[refList][]Ref
	head  *Head
}

// refList identifies a list: the refs below a prefix, in an order.
type refList struct {
	prefix string
	by     Order
}

// witness is a directory or file with its stamp.
type witness struct {
	path string
	was  disk.Stamp
}

func (k *knownRefs) stand() bool {
	for _, w := range k.witnesses {
		if is, err := disk.Look(w.path); err != nil || is != w.was {
			return false
		}
	}
	return true
}

// recalledRefs returns the remembered refs if they are still current, or nil.
func recalledRefs(r *git.Repository) *knownRefs {
	if known, ok := recall.Known[*knownRefs](r.Results(), knowingRefs, ""); ok && known.stand() {
		return known
	}
	return nil
}

// lookUpKnown is recalledRefs, but reads the witnesses if nothing is remembered. It returns nil if the refs have too many directories.
func lookUpKnown(r *git.Repository) *knownRefs {
	if known := recalledRefs(r); known != nil {
		return known
	}
	known := &knownRefs{seen: time.Now()}
	for _, name := range []string{".", "HEAD", "packed-refs", "reftable"} { // gitrepository-layout(5)
		if err := known.add(filepath.Join(r.Dir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := known.addBelow(filepath.Join(r.Dir(), "refs")); err != nil {
		return nil
	}
	rememberRefs(r, known)
	return known
}

const knowingRefs = "knowing the refs"

func rememberRefs(r *git.Repository, known *knownRefs) {
	recall.Keep(r.Results(), knowingRefs, "", known, known.size())
}

// atRest reports whether the witnesses will also show the next change, because a change now would get a different timestamp. It relies only
// on the clock of this process, which can differ from that of the file system.
func (k *knownRefs) atRest() bool { return k != nil && time.Since(k.seen) >= disk.Tick }

// with returns a copy with one more list, and with as many of the other lists as there is room for.
func (k *knownRefs) with(of refList, refs []Ref) *knownRefs {
	more := *k
	more.lists = map[refList][]Ref{of: refs}
	size := more.size()
	for other, refs := range k.lists {
		if bytes := sizeOfRefs(refs); size+bytes <= recall.MaxResult {
			more.lists[other] = refs
			size += bytes
		}
	}
	return &more
}

// withHead returns a copy with HEAD.
func (k *knownRefs) withHead(h Head) *knownRefs {
	more := *k
	more.head = &h
	return &more
}

// size returns the approximate size in memory, in bytes.
func (k *knownRefs) size() int {
	size := 400
	for _, w := range k.witnesses {
		size += len(w.path) + 100
	}
	for _, refs := range k.lists {
		size += sizeOfRefs(refs)
	}
	return size
}

func sizeOfRefs(refs []Ref) int {
	size := 48*cap(refs) + 100
	for _, ref := range refs {
		size += len(ref.Name) + len(ref.Object) + len(ref.Type) + 16 // these strings share the memory of one line
	}
	return size
}

// add adds a file or directory as a witness. Its content is read afterwards, so that a change in between is noticed the next time.
func (k *knownRefs) add(path string) error {
	if len(k.witnesses) == maxWitnesses {
		return fmt.Errorf("the refs have more than %d directories", maxWitnesses)
	}
	was, err := disk.Look(path)
	if err == nil {
		k.witnesses = append(k.witnesses, witness{path, was})
	}
	return err
}

// addBelow adds a directory and all directories below it.
func (k *knownRefs) addBelow(dir string) error {
	if err := k.add(dir); err != nil {
		return err
	}
	within, err := directoriesIn(dir)
	for _, name := range within {
		if err != nil {
			return err
		}
		err = k.addBelow(filepath.Join(dir, name))
	}
	return err
}

// directoriesIn returns the names of the subdirectories of a directory. It fails if the directory has anything except these and files,
// because changes elsewhere would have no witness.
func directoriesIn(dir string) (names []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(64)
		for _, e := range entries {
			switch {
			case e.IsDir():
				names = append(names, e.Name())
			case !e.Type().IsRegular():
				return nil, fmt.Errorf("%s in %s leads somewhere else", e.Name(), dir)
			}
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
