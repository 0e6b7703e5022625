package git

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	modeDirectory = "040000"
	modeSubmodule = "160000"
)

// maxNodes is how many files and directories a treeEdit may hold. One takes about 200 bytes.
const maxNodes = 500_000

// node is a file, directory or submodule.
type node struct {
	// mode has six octal digits.
	mode string
	// id is that of the object; empty for a directory that has changed.
	id string
	// children are those of a directory that has been looked into, by their names; nil otherwise.
	children map[string]*node
}

// with is a file that can be executed or not; anything else stays as it is.
func (n *node) with(executable *bool) *node {
	changed := *n
	switch {
	case executable == nil || !strings.HasPrefix(n.mode, "100"):
	case *executable:
		changed.mode = "100755"
	default:
		changed.mode = "100644"
	}
	return &changed
}

// treeEdit is a tree that is changed in memory. Only those of its directories are read that somebody looks into.
type treeEdit struct {
	repository *Repository
	root       *node
	// pack takes the objects that are made.
	pack *pack
	// nodes counts those in memory.
	nodes int
}

// open reads a directory, once.
func (t *treeEdit) open(ctx context.Context, dir *node) error {
	if dir.children != nil {
		return nil
	}
	o, content, err := t.repository.Read(ctx, dir.id, maxTree)
	if err != nil {
		return err
	}
	if o.Type != "tree" {
		return fmt.Errorf("%s is a %s: %w", dir.id, o.Type, errTree)
	}
	children := map[string]*node{}
	err = parseTree(content, len(o.ID)/2, func(e TreeEntry) error {
		if e.Mode == "100664" { // Git does not take new ones of these
			e.Mode = "100644"
		}
		children[e.Path] = &node{mode: e.Mode, id: e.ID}
		return t.count(1)
	})
	if err == nil {
		dir.children = children
	}
	return err
}

func (t *treeEdit) count(more int) error {
	if t.nodes += more; t.nodes > maxNodes {
		return ErrCommitTooLarge
	}
	return nil
}

// find returns what is at a path, and nil where there is nothing.
func (t *treeEdit) find(ctx context.Context, path string) (*node, error) {
	at := t.root
	for name := range strings.SplitSeq(path, "/") {
		if at.mode != modeDirectory {
			return nil, nil
		}
		if err := t.open(ctx, at); err != nil {
			return nil, err
		}
		if at = at.children[name]; at == nil {
			return nil, nil
		}
	}
	return at, nil
}

// put puts a file at a path, in place of another one or of none. It makes the directories on the way.
func (t *treeEdit) put(ctx context.Context, path string, file *node) error {
	names := strings.Split(path, "/")
	last := len(names) - 1
	dir := t.root
	for _, name := range names[:last] {
		if err := t.open(ctx, dir); err != nil {
			return err
		}
		dir.id = ""
		next := dir.children[name]
		switch {
		case next == nil:
			next = &node{mode: modeDirectory, children: map[string]*node{}}
			dir.children[name] = next
			if err := t.count(1); err != nil {
				return err
			}
		case next.mode != modeDirectory:
			return &ActionError{path, ErrNotDirectory}
		}
		dir = next
	}
	if err := t.open(ctx, dir); err != nil {
		return err
	}
	dir.id = ""
	dir.children[names[last]] = file
	return t.count(1)
}

// remove takes away the file at a path, and the directories that are empty then. It returns the file.
func (t *treeEdit) remove(ctx context.Context, path string) (*node, error) {
	file, err := t.find(ctx, path)
	if err != nil {
		return nil, err
	}
	if file == nil || file.mode == modeDirectory {
		return nil, &ActionError{path, ErrFileNotFound}
	}
	names := strings.Split(path, "/")
	way := []*node{t.root}
	for i, name := range names[:len(names)-1] {
		way = append(way, way[i].children[name])
	}
	for i, dir := range slices.Backward(way) {
		dir.id = ""
		if i == len(way)-1 || len(way[i+1].children) == 0 {
			delete(dir.children, names[i])
		}
	}
	return file, nil
}

// write puts the trees that have changed into the pack, and returns the id of the root.
func (t *treeEdit) write() (id string) { return t.writeDirectory(t.root) }

func (t *treeEdit) writeDirectory(dir *node) (id string) {
	if dir.id != "" {
		return dir.id
	}
	entries := make([]TreeEntry, 0, len(dir.children))
	for name, n := range dir.children {
		e := TreeEntry{Mode: n.mode, Path: name, ID: n.id}
		if n.mode == modeDirectory {
			e.Type, e.ID = "tree", t.writeDirectory(n)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b TreeEntry) int { return strings.Compare(a.key(), b.key()) })
	var content []byte
	for _, e := range entries {
		content = append(content, strings.TrimPrefix(e.Mode, "0")+" "+e.Path+"\x00"...)
		content, _ = hex.AppendDecode(content, []byte(e.ID)) // it comes from an object, or was made here
	}
	dir.id = t.pack.add("tree", content)
	return dir.id
}
