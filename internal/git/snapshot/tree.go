// Package snapshot reads the files of a commit: it lists directories, and reads files and archives of them.
package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/internal/process"
	"github.com/forgeplane/forgeplane/internal/git/internal/recall"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

const (
	// maxEntries is the maximum number of entries in a list, and maxPaths the maximum size of their paths together, in bytes.
	maxEntries = 500_000
	maxPaths   = 64 << 20
	// freeListing is the approximate memory, in bytes, up to which a list does not need a slot.
	freeListing = 4 << 20
)

// Tree lists a directory of a commit, or everything below it if recursive is set, in the order of object.TreeEntry.Compare. An empty path is the
// root. The error is git.ErrObjectNotFound if there is no such directory, git.ErrFileTooLarge for a tree of more than 16 MiB, and git.ErrOutputTooLarge
// for more than 500,000 entries or 64 MiB of paths. Callers must not change the result.
func Tree(ctx context.Context, r *git.Repository, commit, directory string, recursive bool) ([]object.TreeEntry, error) {
	if err := object.CheckIDs(commit); err != nil {
		return nil, err
	}
	clean, ok := object.CleanPath(directory)
	if !ok {
		return nil, fmt.Errorf("directory %.100q: %w", directory, git.ErrObjectNotFound)
	}
	what := "listing a directory"
	if recursive {
		what = "listing a directory with all below"
	}
	return recall.Find(ctx, r.Results(), what, commit+":"+clean, object.SizeOfEntries, func(ctx context.Context) ([]object.TreeEntry, error) {
		var entries []object.TreeEntry
		var err error
		if recursive {
			entries, err = recursiveTree(ctx, r, commit, clean)
		} else {
			entries, err = listTree(ctx, r, commit, clean)
		}
		return object.ByKind(entries), err
	})
}

// FirstBelow is a recursive Tree for callers who need only the first count entries that match; a nil match accepts all. If the list is too
// large to be remembered, it returns only those. Otherwise it returns the whole list, like Tree.
func FirstBelow(ctx context.Context, r *git.Repository, commit, directory string, match func(object.TreeEntry) bool, count int) ([]object.TreeEntry, error) {
	const what = "knowing that a directory has much below"
	ids := commit + ":" + directory
	if _, much := recall.Known[struct{}](r.Results(), what, ids); !much {
		entries, err := Tree(ctx, r, commit, directory, true)
		if err == nil && object.SizeOfEntries(entries) > recall.MaxResult {
			recall.Keep(r.Results(), what, ids, struct{}{}, 0)
		}
		return entries, err
	}
	clean, _ := object.CleanPath(directory) // Tree has listed it
	var trees, blobs, submodules []object.TreeEntry
	first := map[string]*[]object.TreeEntry{"tree": &trees, "blob": &blobs, "commit": &submodules}
	err := below(ctx, r, commit, clean, func(e object.TreeEntry) {
		if of := first[e.Type]; len(*of) < count && (match == nil || match(e)) {
			*of = append(*of, e)
		}
	})
	entries := slices.Concat(trees, blobs, submodules)
	return entries[:min(count, len(entries))], err
}

// Entry returns the entry at a path of a commit. The error is git.ErrObjectNotFound if there is none, and for the root.
func Entry(ctx context.Context, r *git.Repository, commit, p string) (object.TreeEntry, error) {
	if err := object.CheckIDs(commit); err != nil {
		return object.TreeEntry{}, err
	}
	none := fmt.Errorf("path %.100q: %w", p, git.ErrObjectNotFound)
	clean, ok := object.CleanPath(p)
	if !ok || clean == "" {
		return object.TreeEntry{}, none
	}
	size := func(e object.TreeEntry) int { return object.SizeOfEntries([]object.TreeEntry{e}) }
	return recall.Find(ctx, r.Results(), "finding an entry", commit+":"+clean, size, func(ctx context.Context) (found object.TreeEntry, err error) {
		directory, name := path.Split(clean)
		err = readDirectory(ctx, r, commit, strings.TrimSuffix(directory, "/"), func(content []byte, idBytes int) (err error) {
			found, err = object.FindEntry(content, name, idBytes)
			return err
		})
		if found.Path = clean; err == nil && found.ID == "" {
			err = none
		}
		return found, err
	})
}

// listTree lists one tree object.
func listTree(ctx context.Context, r *git.Repository, commit, directory string) (entries []object.TreeEntry, err error) {
	err = readDirectory(ctx, r, commit, directory, func(content []byte, idBytes int) error {
		l := listing{directory: directory, each: func(e object.TreeEntry) { entries = append(entries, e) }}
		return object.ParseTree(content, idBytes, l.add)
	})
	return entries, err
}

// readDirectory calls read with one tree object. It waits for a slot first if the list could use much memory, because each entry repeats the
// path of the directory.
func readDirectory(ctx context.Context, r *git.Repository, commit, directory string, read func(content []byte, idBytes int) error) error {
	within := func(ctx context.Context, limit int64) error {
		o, content, err := r.Read(ctx, commit+":"+directory, limit)
		if o.ID != "" && o.Type != "tree" {
			return fmt.Errorf("%.100q is a %s: %w", directory, o.Type, git.ErrObjectNotFound)
		}
		if err != nil {
			return err
		}
		return read(content, len(o.ID)/2)
	}
	const shortest, listed = 30, 150 // the size of an entry in a tree object, and in a list without the directory
	err := within(ctx, int64(freeListing/(listed+len(directory))*shortest))
	if errors.Is(err, git.ErrFileTooLarge) {
		return r.Walking(ctx, func(ctx context.Context) error { return within(ctx, object.MaxTree) })
	}
	return err
}

// listing counts the listed entries of a directory.
type listing struct {
	directory      string
	each           func(object.TreeEntry)
	entries, paths int
}

// add adds an entry whose path is relative to the directory.
func (l *listing) add(e object.TreeEntry) error {
	length := len(e.Path)
	if l.directory != "" {
		length += len(l.directory) + 1
	}
	l.entries++
	if l.paths += length; l.paths > maxPaths || l.entries > maxEntries {
		return fmt.Errorf("listing %.100q: %w", l.directory, process.ErrOutputTooLarge)
	}
	if l.directory != "" {
		e.Path = l.directory + "/" + e.Path
	}
	l.each(e)
	return nil
}

func recursiveTree(ctx context.Context, r *git.Repository, commit, directory string) (entries []object.TreeEntry, err error) {
	err = below(ctx, r, commit, directory, func(e object.TreeEntry) { entries = append(entries, e) })
	return entries, err
}

// below lists everything below a directory with a git command, and calls each in Git's order. A few small trees can have very many paths
// below them, if one contains another many times.
func below(ctx context.Context, r *git.Repository, commit, directory string, each func(object.TreeEntry)) error {
	found, err := r.Objects(ctx, commit+":"+directory)
	if err != nil {
		return err
	}
	if found[0].Type != "tree" {
		return fmt.Errorf("%.100q: %w", directory, git.ErrObjectNotFound)
	}
	c := process.In(r.Dir(), "ls-tree", "-r", "-t", "-z", "--full-tree", "--end-of-options", found[0].ID)
	return r.Walking(ctx, func(ctx context.Context) error {
		return r.Pipe(ctx, c, func(out io.Reader) error { return readEntries(out, directory, each) })
	})
}

// readEntries parses "<mode> <type> <id>\t<path>\0", without separators.
func readEntries(from io.Reader, directory string, each func(object.TreeEntry)) error {
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
		e := object.TreeEntry{ID: id, Path: name}
		if e.Mode, e.Type, ok = object.ModeOf(mode); !ok {
			return fmt.Errorf("%w: it has mode %.10q", object.ErrDamagedTree, mode)
		}
		if err := l.add(e); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("git ls-tree: %w", process.ErrOutputTooLarge)
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
