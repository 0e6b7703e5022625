package edit

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

const (
	modeDirectory = "040000"
	modeSubmodule = "160000"
)

// maxNodes is the maximum number of files and directories in a treeEdit. Each uses about 200 bytes.
const maxNodes = 500_000

// node is a file, directory or submodule.
type node struct {
	// mode has six octal digits.
	mode string
	// id is the id of the object; empty for a directory that has changed.
	id string
	// children are the entries of a directory that was opened, by name; otherwise nil.
	children map[string]*node
}

// with returns the node of a file with the executable bit set or cleared. Other nodes do not change.
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

// treeEdit changes a tree in memory. It reads only the directories that it needs.
type treeEdit struct {
	repository *git.Repository
	root       *node
	// pack receives the new objects.
	pack *object.Pack
	// nodes is the number of nodes in memory.
	nodes int
}

// open reads a directory unless it was read before.
func (t *treeEdit) open(ctx context.Context, dir *node) error {
	if dir.children != nil {
		return nil
	}
	o, content, err := t.repository.Read(ctx, dir.id, object.MaxTree)
	if err != nil {
		return err
	}
	if o.Type != "tree" {
		return fmt.Errorf("%s is a %s: %w", dir.id, o.Type, object.ErrDamagedTree)
	}
	children := map[string]*node{}
	err = object.ParseTree(content, len(o.ID)/2, func(e object.TreeEntry) error {
		if e.Mode == "100664" { // Git does not accept this mode in new trees
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
		return ErrTooLarge
	}
	return nil
}

// find returns the node at a path, or nil if there is none.
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

// put sets the file at a path, and creates the directories above it.
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
			return &ActionError{Path: path, Err: ErrNotDirectory}
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

// remove removes the file at a path and the directories that become empty. It returns the file.
func (t *treeEdit) remove(ctx context.Context, path string) (*node, error) {
	file, err := t.find(ctx, path)
	if err != nil {
		return nil, err
	}
	if file == nil || file.mode == modeDirectory {
		return nil, &ActionError{Path: path, Err: ErrFileNotFound}
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

// write adds the changed trees to the pack, and returns the id of the root.
func (t *treeEdit) write() (id string) { return t.writeDirectory(t.root) }

func (t *treeEdit) writeDirectory(dir *node) (id string) {
	if dir.id != "" {
		return dir.id
	}
	entries := make([]object.TreeEntry, 0, len(dir.children))
	for name, n := range dir.children {
		e := object.TreeEntry{Mode: n.mode, Path: name, ID: n.id}
		if n.mode == modeDirectory {
			e.Type, e.ID = "tree", t.writeDirectory(n)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(a.Key(), b.Key()) })
	var content []byte
	for _, e := range entries {
		content = append(content, strings.TrimPrefix(e.Mode, "0")+" "+e.Path+"\x00"...)
		content, _ = hex.AppendDecode(content, []byte(e.ID)) // the id is valid: it was read from an object or computed here
	}
	dir.id = t.pack.Add("tree", content)
	return dir.id
}
