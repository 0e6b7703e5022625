package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// NewCommit describes a commit to write.
type NewCommit struct {
	// Parent is the id of the parent commit; empty for a root commit.
	Parent string
	// Actions are applied in order to the tree of the parent.
	Actions []Action
	// Author and Committer are as in Commit. Characters that Git does not allow in names and addresses are removed.
	Author, Committer Signature
	// Message is stored unchanged. It must be valid UTF-8.
	Message string
}

const (
	// maxActions is the maximum number of actions of a commit, and maxContents the maximum size of their contents together, in bytes.
	maxActions  = 10_000
	maxContents = 64 << 20
)

// WriteCommit writes a commit and all its new objects, and returns its id. No ref names the commit yet; if none ever does, the garbage
// collection removes the objects. Git checks them like the objects of a push. The error is an *ActionError for an action that cannot be
// applied, a *RefusedObjectError for an object that Git rejects, ErrObjectNotFound if the parent is not a commit, and ErrCommitTooLarge for
// more than 10,000 actions, 64 MiB of content, a message of 1 MiB, or 500,000 entries in the affected directories.
func (r *Repository) WriteCommit(ctx context.Context, c NewCommit) (id string, err error) {
	if err := c.checkSize(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, updateTimeout, fmt.Errorf("writing a commit took longer than %s", updateTimeout))
	defer cancel()
	t, err := r.editTree(ctx, c.Parent)
	if err != nil {
		return "", err
	}
	if err := r.checkLastCommits(ctx, c); err != nil {
		return "", err
	}
	for _, a := range c.Actions {
		if err := t.apply(ctx, a); err != nil {
			return "", err
		}
	}
	id = t.pack.add("commit", c.object(t.write()))
	if err := r.store(ctx, t.pack); err != nil {
		return "", fmt.Errorf("writing a commit: %w", err)
	}
	return id, nil
}

func (c NewCommit) checkSize() error {
	bytes := 0
	for _, a := range c.Actions {
		bytes += len(a.Content)
	}
	if len(c.Actions) > maxActions || bytes > maxContents || len(c.Message) > maxCommit/4 {
		return ErrCommitTooLarge
	}
	return nil
}

// editTree returns an editor of the tree of a commit, or of an empty tree.
func (r *Repository) editTree(ctx context.Context, commit string) (*treeEdit, error) {
	if commit != "" {
		c, err := r.ReadCommit(ctx, commit)
		if err != nil {
			return nil, err
		}
		return &treeEdit{repository: r, pack: newPack(len(commit)), root: &node{mode: modeDirectory, id: c.Tree}}, nil
	}
	const longest = 64
	format, err := r.Objects(ctx, emptyTree(strings.Repeat("0", longest)))
	if err != nil {
		return nil, err
	}
	p := newPack(40)
	if format[0].ID != "" { // every repository has the empty tree, in its own format
		p = newPack(longest)
	}
	return &treeEdit{repository: r, pack: p, root: &node{mode: modeDirectory, children: map[string]*node{}}}, nil
}

// checkLastCommits compares the last commits that changed the files with those that the actions expect.
func (r *Repository) checkLastCommits(ctx context.Context, c NewCommit) error {
	for _, a := range c.Actions {
		if a.LastCommit == "" {
			continue
		}
		path := a.Path
		if a.Kind == MoveFile {
			path = a.From
		}
		if err := checkPath(path); err != nil {
			return err
		}
		last, err := "", error(nil)
		if c.Parent != "" {
			last, err = r.LastCommit(ctx, c.Parent, path)
		}
		if err != nil && !errors.Is(err, ErrObjectNotFound) {
			return err
		}
		if last != a.LastCommit {
			return &ActionError{path, ErrFileChanged}
		}
	}
	return nil
}

// object returns the content of the commit object.
func (c NewCommit) object(tree string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	if c.Parent != "" {
		fmt.Fprintf(&b, "parent %s\n", c.Parent)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", c.Author, c.Committer, c.Message)
	return []byte(b.String())
}
