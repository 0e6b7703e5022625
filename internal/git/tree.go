package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// TreeEntry is a file, directory or submodule in a tree.
type TreeEntry struct {
	// Mode has six octal digits, as in "100644".
	Mode string
	// Type is "blob", "tree", or "commit" for a submodule.
	Type string
	// ID is that of the object.
	ID string
	// Path is from the root of the repository.
	Path string
}

// Name is the last part of the path.
func (e TreeEntry) Name() string { return path.Base(e.Path) }

const (
	// maxTree is how large one tree may be, in bytes.
	maxTree = 16 << 20
	// maxEntries is how many entries a listing may have, and maxPaths how long their paths together, in bytes.
	maxEntries = 500_000
	maxPaths   = 64 << 20
	// freeListing is about how many bytes of memory a listing may take that does not wait for its turn.
	freeListing = 4 << 20
)

// CleanPath returns a path inside of a repository without slashes at its ends; empty for the root. It reports false for one
// that cannot be there.
func CleanPath(p string) (clean string, ok bool) {
	p = strings.Trim(p, "/")
	if p == "" {
		return "", true
	}
	return p, filepath.IsLocal(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// kinds are the types of entries in the order of a listing.
var kinds = []string{"tree", "blob", "commit"}

// Compare orders entries as a listing does: directories, files, submodules, each of them in the order of Git.
func (e TreeEntry) Compare(other TreeEntry) int {
	if e.Type != other.Type {
		return slices.Index(kinds, e.Type) - slices.Index(kinds, other.Type)
	}
	return strings.Compare(e.key(), other.key())
}

// key is what Git orders trees by.
func (e TreeEntry) key() string {
	if e.Type == "tree" {
		return e.Path + "/"
	}
	return e.Path
}

// Tree lists a directory of a commit, or all that is below it, in the order of TreeEntry.Compare. An empty path is the root. It
// is ErrObjectNotFound where there is no directory, ErrFileTooLarge for one of more than 16 MiB, and ErrOutputTooLarge where more
// than 500,000 entries, or 64 MiB of paths, are to be listed. Nobody changes what it returns.
func (r *Repository) Tree(ctx context.Context, commit, directory string, recursive bool) ([]TreeEntry, error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	clean, ok := CleanPath(directory)
	if !ok {
		return nil, fmt.Errorf("directory %.100q: %w", directory, ErrObjectNotFound)
	}
	what, list := "listing a directory", r.tree
	if recursive {
		what, list = "listing a directory with all below", r.recursiveTree
	}
	return recall(ctx, r, what, commit+":"+clean, sizeOfEntries, func(ctx context.Context) ([]TreeEntry, error) {
		entries, err := list(ctx, commit, clean)
		return byKind(entries), err
	})
}

// FirstBelow is a recursive Tree for a caller who needs only the first count entries that match, all of them if match is nil. Where
// there is too much to be remembered, it returns no others; it is Tree otherwise.
func (r *Repository) FirstBelow(ctx context.Context, commit, directory string, match func(TreeEntry) bool, count int) ([]TreeEntry, error) {
	const what = "knowing that a directory has much below"
	ids := commit + ":" + directory
	if _, much := recalled[struct{}](r, what, ids); !much {
		entries, err := r.Tree(ctx, commit, directory, true)
		if err == nil && sizeOfEntries(entries) > maxResult {
			remember(r, what, ids, struct{}{}, 0)
		}
		return entries, err
	}
	clean, _ := CleanPath(directory) // Tree has listed it
	var trees, blobs, submodules []TreeEntry
	first := map[string]*[]TreeEntry{"tree": &trees, "blob": &blobs, "commit": &submodules}
	err := r.below(ctx, commit, clean, func(e TreeEntry) {
		if of := first[e.Type]; len(*of) < count && (match == nil || match(e)) {
			*of = append(*of, e)
		}
	})
	entries := slices.Concat(trees, blobs, submodules)
	return entries[:min(count, len(entries))], err
}

// Entry returns what is at a path of a commit. It is ErrObjectNotFound where there is nothing, and for the root.
func (r *Repository) Entry(ctx context.Context, commit, p string) (TreeEntry, error) {
	if err := checkIDs(commit); err != nil {
		return TreeEntry{}, err
	}
	none := fmt.Errorf("path %.100q: %w", p, ErrObjectNotFound)
	clean, ok := CleanPath(p)
	if !ok || clean == "" {
		return TreeEntry{}, none
	}
	size := func(e TreeEntry) int { return sizeOfEntries([]TreeEntry{e}) }
	return recall(ctx, r, "finding an entry", commit+":"+clean, size, func(ctx context.Context) (found TreeEntry, err error) {
		directory, name := path.Split(clean)
		err = r.directory(ctx, commit, strings.TrimSuffix(directory, "/"), func(content []byte, idBytes int) (err error) {
			found, err = findEntry(content, name, idBytes)
			return err
		})
		if found.Path = clean; err == nil && found.ID == "" {
			err = none
		}
		return found, err
	})
}

// byKind takes entries apart that are in the order of Git.
func byKind(entries []TreeEntry) []TreeEntry {
	if len(entries) == 0 {
		return entries
	}
	ordered := make([]TreeEntry, 0, len(entries))
	for _, kind := range kinds {
		for _, e := range entries {
			if e.Type == kind {
				ordered = append(ordered, e)
			}
		}
	}
	return ordered
}

func sizeOfEntries(entries []TreeEntry) (size int) {
	for _, e := range entries {
		size += len(e.Path) + len(e.ID) + 80 // its four strings, the mode and type of which are shared, and what a line has besides
	}
	return size
}

// tree lists one tree object.
func (r *Repository) tree(ctx context.Context, commit, directory string) (entries []TreeEntry, err error) {
	err = r.directory(ctx, commit, directory, func(content []byte, idBytes int) error {
		l := listing{directory: directory, each: func(e TreeEntry) { entries = append(entries, e) }}
		return parseTree(content, idBytes, l.add)
	})
	return entries, err
}

// directory lets read have one tree object, when its turn has come if a listing of it could take much memory: each entry has the path
// of the directory again.
func (r *Repository) directory(ctx context.Context, commit, directory string, read func(content []byte, idBytes int) error) error {
	within := func(ctx context.Context, limit int64) error {
		o, content, err := r.Read(ctx, commit+":"+directory, limit)
		if o.ID != "" && o.Type != "tree" {
			return fmt.Errorf("%.100q is a %s: %w", directory, o.Type, ErrObjectNotFound)
		}
		if err != nil {
			return err
		}
		return read(content, len(o.ID)/2)
	}
	const shortest, listed = 30, 150 // bytes of an entry in its tree, and in a listing without the directory
	err := within(ctx, int64(freeListing/(listed+len(directory))*shortest))
	if errors.Is(err, ErrFileTooLarge) {
		return r.engine.walking(ctx, func(ctx context.Context) error { return within(ctx, maxTree) })
	}
	return err
}

var errTree = errors.New("a tree is damaged")

// rawEntry is an entry as it is in a tree object.
type rawEntry struct{ mode, name, id []byte }

// cutEntry takes the first entry off a tree object: "<mode> <name>\0<id>" without anything before the next one.
func cutEntry(content []byte, idBytes int) (e rawEntry, rest []byte, err error) {
	mode, rest, ok := bytes.Cut(content, []byte(" "))
	name, rest, ok2 := bytes.Cut(rest, []byte{0})
	if !ok || !ok2 || len(rest) < idBytes || len(name) == 0 {
		return e, nil, errTree
	}
	return rawEntry{mode, name, rest[:idBytes]}, rest[idBytes:], nil
}

// entry has only the name for a path.
func (e rawEntry) entry() (TreeEntry, error) {
	mode, kind, ok := modeOf(string(e.mode))
	if !ok {
		return TreeEntry{}, fmt.Errorf("%w: it has mode %.10q", errTree, e.mode)
	}
	return TreeEntry{Mode: mode, Type: kind, ID: hex.EncodeToString(e.id), Path: string(e.name)}, nil
}

// parseTree calls each with the entries of a tree object, whose paths are their names.
func parseTree(content []byte, idBytes int, each func(TreeEntry) error) error {
	for len(content) > 0 {
		raw, rest, err := cutEntry(content, idBytes)
		if err != nil {
			return err
		}
		e, err := raw.entry()
		if err != nil {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
		content = rest
	}
	return nil
}

// findEntry returns the entry of a tree object that has a name, and the zero TreeEntry if none has.
func findEntry(content []byte, name string, idBytes int) (TreeEntry, error) {
	for len(content) > 0 {
		raw, rest, err := cutEntry(content, idBytes)
		if err != nil {
			return TreeEntry{}, err
		}
		if string(raw.name) == name {
			return raw.entry()
		}
		content = rest
	}
	return TreeEntry{}, nil
}

// listing counts what is listed of a directory.
type listing struct {
	directory      string
	each           func(TreeEntry)
	entries, paths int
}

// add takes an entry whose path is from the directory on.
func (l *listing) add(e TreeEntry) error {
	length := len(e.Path)
	if l.directory != "" {
		length += len(l.directory) + 1
	}
	l.entries++
	if l.paths += length; l.paths > maxPaths || l.entries > maxEntries {
		return fmt.Errorf("listing %.100q: %w", l.directory, ErrOutputTooLarge)
	}
	if l.directory != "" {
		e.Path = l.directory + "/" + e.Path
	}
	l.each(e)
	return nil
}

// modeOf returns the mode of an entry as people write it, and the type that it stands for.
func modeOf(mode string) (six, kind string, ok bool) {
	switch strings.TrimLeft(mode, "0") {
	case "40000":
		return "040000", "tree", true
	case "100644":
		return "100644", "blob", true
	case "100755":
		return "100755", "blob", true
	case "120000":
		return "120000", "blob", true
	case "160000":
		return "160000", "commit", true
	case "100664": // of old
		return "100664", "blob", true
	default:
		return "", "", false
	}
}

func (r *Repository) recursiveTree(ctx context.Context, commit, directory string) (entries []TreeEntry, err error) {
	err = r.below(ctx, commit, directory, func(e TreeEntry) { entries = append(entries, e) })
	return entries, err
}

// below has git walk, and calls each in the order of Git. A few small trees may have much below them, where one is in the others
// many times.
func (r *Repository) below(ctx context.Context, commit, directory string, each func(TreeEntry)) error {
	found, err := r.Objects(ctx, commit+":"+directory)
	if err != nil {
		return err
	}
	if found[0].Type != "tree" {
		return fmt.Errorf("%.100q: %w", directory, ErrObjectNotFound)
	}
	c := r.command("ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", found[0].ID)
	return r.engine.walking(ctx, func(ctx context.Context) error {
		return r.pipe(ctx, c, func(out io.Reader) error { return readEntries(out, directory, each) })
	})
}

// readEntries reads "<mode> <type> <id>\t<path>\0" without anything in between.
func readEntries(from io.Reader, directory string, each func(TreeEntry)) error {
	l := listing{directory: directory, each: each}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	lines.Split(records)
	for lines.Scan() {
		meta, name, ok := strings.Cut(lines.Text(), "\t")
		mode, rest, ok2 := strings.Cut(meta, " ")
		_, id, ok3 := strings.Cut(rest, " ")
		if !ok || !ok2 || !ok3 {
			return fmt.Errorf("git ls-tree: unexpected line %.100q", lines.Bytes())
		}
		e := TreeEntry{ID: id, Path: name}
		if e.Mode, e.Type, ok = modeOf(mode); !ok {
			return fmt.Errorf("%w: it has mode %.10q", errTree, mode)
		}
		if err := l.add(e); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("git ls-tree: %w", ErrOutputTooLarge)
	}
	return lines.Err()
}

// records is a bufio.SplitFunc for what ends with a zero byte.
func records(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}
