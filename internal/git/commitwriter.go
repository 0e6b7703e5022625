package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// NewCommit is a commit that is to be written.
type NewCommit struct {
	// Parent is the id of the commit that it follows; empty for one that follows none.
	Parent string
	// Actions are done one after the other to what the parent has.
	Actions []Action
	// Author and Committer are as in Commit. What Git does not allow in their names and addresses is left out.
	Author, Committer Signature
	// Message is kept as it is. It is valid UTF-8.
	Message string
}

const (
	// maxActions is how many actions a commit may have, and maxContents how many bytes their contents together.
	maxActions  = 10_000
	maxContents = 64 << 20
)

// WriteCommit writes a commit and all that is new in it, and returns its id. No ref names it yet: if none ever does, the objects go
// with the next garbage collection. Git checks them as it does those of a push. The error is an *ActionError for an action that cannot
// be done, a *RefusedObjectError for what Git does not take, ErrObjectNotFound where the parent is no commit, and ErrCommitTooLarge
// beyond 10,000 actions, 64 MiB of content, a message of 1 MiB, or 500,000 entries of all directories that are touched.
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

// editTree begins to change the tree of a commit, or an empty one.
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
	if format[0].ID != "" { // every repository has the empty tree, under its own id
		p = newPack(longest)
	}
	return &treeEdit{repository: r, pack: p, root: &node{mode: modeDirectory, children: map[string]*node{}}}, nil
}

// checkLastCommits compares the commits that the actions expect with those that were the last to change their files.
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

// object is what stands in the commit.
func (c NewCommit) object(tree string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	if c.Parent != "" {
		fmt.Fprintf(&b, "parent %s\n", c.Parent)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", c.Author, c.Committer, c.Message)
	return []byte(b.String())
}
