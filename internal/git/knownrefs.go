package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxWitnesses bounds how many directories are looked at to know whether a ref has changed. To ask git takes less than more of them.
const maxWitnesses = 100

// knownRefs is what is known of the refs of a repository. Nobody changes it.
type knownRefs struct {
	// witnesses tell of every change, whoever has made it: git changes a ref by a file that it makes in one of these directories.
	witnesses []witness
	// seen is when the first of them was looked at.
	seen time.Time
	// lists are what git has listed since they are at rest, and head is what HEAD was read to be; nil where nobody has asked.
	lists map[refList][]Ref
	head  *Head
}

// refList is the question for the refs below a prefix, in an order.
type refList struct {
	prefix string
	by     RefOrder
}

// witness is a directory or file, and what it was like.
type witness struct {
	path string
	was  stamp
}

// stamp is what another one has that was changed, or that has come into its place.
type stamp struct {
	device, inode     uint64
	size              uint64
	modified, changed int64 // in nanoseconds since 1970
}

func (k *knownRefs) stand() bool {
	for _, w := range k.witnesses {
		if is, err := look(w.path); err != nil || is != w.was {
			return false
		}
	}
	return true
}

// recalledRefs returns what is known of the refs as they are now, and nil where nothing is.
func (r *Repository) recalledRefs() *knownRefs {
	if known, ok := recalled[*knownRefs](r, knowingRefs, ""); ok && known.stand() {
		return known
	}
	return nil
}

// knownRefs is recalledRefs, and looks for witnesses where nothing is known. It is nil where the refs have too many directories.
func (r *Repository) knownRefs() *knownRefs {
	if known := r.recalledRefs(); known != nil {
		return known
	}
	known := &knownRefs{seen: time.Now()}
	for _, name := range []string{".", "HEAD", "packed-refs", "reftable"} { // gitrepository-layout(5)
		if err := known.add(filepath.Join(r.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := known.addBelow(filepath.Join(r.dir, "refs")); err != nil {
		return nil
	}
	r.rememberRefs(known)
	return known
}

const knowingRefs = "knowing the refs"

func (r *Repository) rememberRefs(known *knownRefs) {
	if bytes := known.size(); bytes <= maxResult {
		remember(r, knowingRefs, "", known, bytes)
	}
}

// atRest reports whether the witnesses tell of the next change, too: by now it has another time than what they have seen. No clock but
// that of this process counts, which may be another one than that of the file system.
func (k *knownRefs) atRest() bool { return k != nil && time.Since(k.seen) >= tick }

// with returns what is known together with one more list, and as many of the others as there is room for.
func (k *knownRefs) with(of refList, refs []Ref) *knownRefs {
	more := *k
	more.lists = map[refList][]Ref{of: refs}
	size := more.size()
	for other, refs := range k.lists {
		if bytes := sizeOfRefs(refs); size+bytes <= maxResult {
			more.lists[other] = refs
			size += bytes
		}
	}
	return &more
}

// withHead returns what is known together with HEAD.
func (k *knownRefs) withHead(h Head) *knownRefs {
	more := *k
	more.head = &h
	return &more
}

// size is about how many bytes of memory it takes.
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
		size += len(ref.Name) + len(ref.Object) + len(ref.Type) + 16 // parts of one line
	}
	return size
}

// add adds a file or directory. What is in it is read afterwards, so that what changes in between is seen the next time.
func (k *knownRefs) add(path string) error {
	if len(k.witnesses) == maxWitnesses {
		return fmt.Errorf("the refs have more than %d directories", maxWitnesses)
	}
	was, err := look(path)
	if err == nil {
		k.witnesses = append(k.witnesses, witness{path, was})
	}
	return err
}

// addBelow adds a directory and all below.
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

// directoriesIn returns the names of the directories in one that has nothing else in it but files: what is elsewhere has no witness.
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
