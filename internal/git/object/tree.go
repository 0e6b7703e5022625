package object

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
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

// MaxTree is the maximum size of a tree object that is read, in bytes.
const MaxTree = 16 << 20

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
	return strings.Compare(e.Key(), other.Key())
}

// Key returns the string by which Git orders trees.
func (e TreeEntry) Key() string {
	if e.Type == "tree" {
		return e.Path + "/"
	}
	return e.Path
}

// ByKind sorts entries that are in Git's order by type.
func ByKind(entries []TreeEntry) []TreeEntry {
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

// SizeOfEntries returns the approximate size of entries in memory, in bytes.
func SizeOfEntries(entries []TreeEntry) (size int) {
	for _, e := range entries {
		size += len(e.Path) + len(e.ID) + 80 // four strings, of which the mode and type are shared, and the rest of the line
	}
	return size
}

// ErrDamagedTree is returned for the content of a tree that cannot be parsed.
var ErrDamagedTree = errors.New("a tree is damaged")

// rawEntry is an entry of a tree object.
type rawEntry struct{ mode, name, id []byte }

// cutEntry splits the first entry off a tree object. Entries have the form "<mode> <name>\0<id>", without separators.
func cutEntry(content []byte, idBytes int) (e rawEntry, rest []byte, err error) {
	mode, rest, ok := bytes.Cut(content, []byte(" "))
	name, rest, ok2 := bytes.Cut(rest, []byte{0})
	if !ok || !ok2 || len(rest) < idBytes || len(name) == 0 {
		return e, nil, ErrDamagedTree
	}
	return rawEntry{mode, name, rest[:idBytes]}, rest[idBytes:], nil
}

// entry converts the entry. Its path is only the name.
func (e rawEntry) entry() (TreeEntry, error) {
	mode, kind, ok := ModeOf(string(e.mode))
	if !ok {
		return TreeEntry{}, fmt.Errorf("%w: it has mode %.10q", ErrDamagedTree, e.mode)
	}
	return TreeEntry{Mode: mode, Type: kind, ID: hex.EncodeToString(e.id), Path: string(e.name)}, nil
}

// ParseTree calls each with the entries of a tree object. Their paths are only their names.
func ParseTree(content []byte, idBytes int, each func(TreeEntry) error) error {
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

// FindEntry returns the entry of a tree object with a name, or the zero TreeEntry.
func FindEntry(content []byte, name string, idBytes int) (TreeEntry, error) {
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

// ModeOf returns the mode of an entry in the usual form with six digits, and the type that it means.
func ModeOf(mode string) (six, kind string, ok bool) {
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
