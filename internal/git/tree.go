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
	// ID is the id of the object.
	ID string
	// Path is relative to the root of the repository.
	Path string
}

// Name returns the last part of the path.
func (e TreeEntry) Name() string { return path.Base(e.Path) }

const (
	// maxTree is the maximum size of one tree object, in bytes.
	maxTree = 16 << 20
	// maxEntries is the maximum number of entries in a list, and maxPaths the maximum size of their paths together, in bytes.
	maxEntries = 500_000
	maxPaths   = 64 << 20
	// freeListing is the approximate memory, in bytes, up to which a list does not need a slot.
	freeListing = 4 << 20
)

// CleanPath returns a path within a repository without slashes at its ends; empty for the root. It reports false for a path that cannot
// exist there.
func CleanPath(p string) (clean string, ok bool) {
	p = strings.Trim(p, "/")
	if p == "" {
		return "", true
	}
	return p, filepath.IsLocal(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// kinds are the types of entries in the order of a list.
var kinds = []string{"tree", "blob", "commit"}

// Compare orders the entries of a list: directories, files, submodules, and each of these in Git's order.
func (e TreeEntry) Compare(other TreeEntry) int {
	if e.Type != other.Type {
		return slices.Index(kinds, e.Type) - slices.Index(kinds, other.Type)
	}
	return strings.Compare(e.key(), other.key())
}

// key returns the string by which Git orders trees.
func (e TreeEntry) key() string {
	if e.Type == "tree" {
		return e.Path + "/"
	}
	return e.Path
}

// Tree lists a directory of a commit, or everything below it if recursive is set, in the order of TreeEntry.Compare. An empty path is the
// root. The error is ErrObjectNotFound if there is no such directory, ErrFileTooLarge for a tree of more than 16 MiB, and ErrOutputTooLarge
// for more than 500,000 entries or 64 MiB of paths. Callers must not change the result.
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

// FirstBelow is a recursive Tree for callers who need only the first count entries that match; a nil match accepts all. If the list is too
// large to be remembered, it returns only those. Otherwise it returns the whole list, like Tree.
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

// Entry returns the entry at a path of a commit. The error is ErrObjectNotFound if there is none, and for the root.
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

// byKind sorts entries that are in Git's order by type.
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
		size += len(e.Path) + len(e.ID) + 80 // four strings, of which the mode and type are shared, and the rest of the line
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

// directory calls read with one tree object. It waits for a slot first if the list could use much memory, because each entry repeats the
// path of the directory.
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
	const shortest, listed = 30, 150 // the size of an entry in a tree object, and in a list without the directory
	err := within(ctx, int64(freeListing/(listed+len(directory))*shortest))
	if errors.Is(err, ErrFileTooLarge) {
		return r.engine.walking(ctx, func(ctx context.Context) error { return within(ctx, maxTree) })
	}
	return err
}

var errTree = errors.New("a tree is damaged")

// rawEntry is an entry of a tree object.
type rawEntry struct{ mode, name, id []byte }

// cutEntry splits the first entry off a tree object. Entries have the form "<mode> <name>\0<id>", without separators.
func cutEntry(content []byte, idBytes int) (e rawEntry, rest []byte, err error) {
	mode, rest, ok := bytes.Cut(content, []byte(" "))
	name, rest, ok2 := bytes.Cut(rest, []byte{0})
	if !ok || !ok2 || len(rest) < idBytes || len(name) == 0 {
		return e, nil, errTree
	}
	return rawEntry{mode, name, rest[:idBytes]}, rest[idBytes:], nil
}

// entry converts the entry. Its path is only the name.
func (e rawEntry) entry() (TreeEntry, error) {
	mode, kind, ok := modeOf(string(e.mode))
	if !ok {
		return TreeEntry{}, fmt.Errorf("%w: it has mode %.10q", errTree, e.mode)
	}
	return TreeEntry{Mode: mode, Type: kind, ID: hex.EncodeToString(e.id), Path: string(e.name)}, nil
}

// parseTree calls each with the entries of a tree object. Their paths are only their names.
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

// findEntry returns the entry of a tree object with a name, or the zero TreeEntry.
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

// listing counts the listed entries of a directory.
type listing struct {
	directory      string
	each           func(TreeEntry)
	entries, paths int
}

// add adds an entry whose path is relative to the directory.
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

// modeOf returns the mode of an entry in the usual form with six digits, and the type that it means.
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
	case "100664": // in old repositories
		return "100664", "blob", true
	default:
		return "", "", false
	}
}

func (r *Repository) recursiveTree(ctx context.Context, commit, directory string) (entries []TreeEntry, err error) {
	err = r.below(ctx, commit, directory, func(e TreeEntry) { entries = append(entries, e) })
	return entries, err
}

// below lists everything below a directory with a git command, and calls each in Git's order. A few small trees can have very many paths
// below them, if one contains another many times.
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

// readEntries parses "<mode> <type> <id>\t<path>\0", without separators.
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

// records is a bufio.SplitFunc for records that end with a zero byte.
func records(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}
