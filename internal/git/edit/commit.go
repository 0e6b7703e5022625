// Package edit writes new commits and tags. No ref names them yet; package refs creates refs.
package edit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/history"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// NewCommit describes a commit to write.
type NewCommit struct {
	// Parent is the id of the parent commit; empty for a root commit.
	Parent string
	// Actions are applied in order to the tree of the parent.
	Actions []Action
	// Author and Committer are as in Commit. Characters that Git does not allow in names and addresses are removed.
	Author, Committer object.Signature
	// Message is stored unchanged. It must be valid UTF-8.
	Message string
}

const (
	// maxActions is the maximum number of actions of a commit, and maxContents the maximum size of their contents together, in bytes.
	maxActions  = 10_000
	maxContents = 64 << 20
)

// writeTimeout limits the time to write a commit or a tag.
const writeTimeout = 30 * time.Second

// Commit writes a commit and all its new objects, and returns its id. No ref names the commit yet; if none ever does, the garbage
// collection removes the objects. Git checks them like the objects of a push. The error is an *ActionError for an action that cannot be
// applied, a *RefusedObjectError for an object that Git rejects, git.ErrObjectNotFound if the parent is not a commit, and ErrTooLarge for
// more than 10,000 actions, 64 MiB of content, a message of 1 MiB, or 500,000 entries in the affected directories.
func Commit(ctx context.Context, r *git.Repository, c NewCommit) (id string, err error) {
	if err := c.checkSize(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, writeTimeout, fmt.Errorf("writing a commit took longer than %s", writeTimeout))
	defer cancel()
	t, err := editTree(ctx, r, c.Parent)
	if err != nil {
		return "", err
	}
	if err := checkLastCommits(ctx, r, c); err != nil {
		return "", err
	}
	for i, a := range c.Actions {
		if err := t.apply(ctx, a); err != nil {
			return "", at(i, err)
		}
	}
	var parents []string
	if c.Parent != "" {
		parents = []string{c.Parent}
	}
	made := TreeCommit{Tree: t.write(), Parents: parents, Author: c.Author, Committer: c.Committer, Message: c.Message}
	id = t.pack.Add("commit", made.object())
	if err := store(ctx, r, t.pack); err != nil {
		return "", fmt.Errorf("writing a commit: %w", err)
	}
	return id, nil
}

// TreeCommit describes a commit of a tree that exists.
type TreeCommit struct {
	Tree    string
	Parents []string
	// Author, Committer and Message are as in NewCommit.
	Author, Committer object.Signature
	Message           string
}

// CommitTree writes a commit of a tree and returns its id. The tree and the parents must be in the repository. See Commit for refs and errors.
func CommitTree(ctx context.Context, r *git.Repository, c TreeCommit) (id string, err error) {
	err = CommitTrees(ctx, r, len(c.Tree), func(add func(TreeCommit) string) { id = add(c) })
	return id, err
}

// CommitTrees is CommitTree for several commits, in a repository whose ids have idLength characters. build passes each commit to add, which
// returns its id. The parents can be commits that were added before.
func CommitTrees(ctx context.Context, r *git.Repository, idLength int, build func(add func(TreeCommit) (id string))) error {
	pack, failed := object.NewPack(idLength), error(nil)
	build(func(c TreeCommit) string {
		failed = errors.Join(failed, object.CheckIDs(append([]string{c.Tree}, c.Parents...)...))
		if len(c.Message) > object.MaxCommit/4 {
			failed = ErrTooLarge
		}
		return pack.Add("commit", c.object())
	})
	if failed != nil {
		return failed
	}
	ctx, cancel := context.WithTimeoutCause(ctx, writeTimeout, fmt.Errorf("writing a commit took longer than %s", writeTimeout))
	defer cancel()
	if err := store(ctx, r, pack); err != nil {
		return fmt.Errorf("writing a commit: %w", err)
	}
	return nil
}

// at sets the index of an *ActionError.
func at(index int, err error) error {
	var failed *ActionError
	if errors.As(err, &failed) {
		failed.Index = index
	}
	return err
}

func (c NewCommit) checkSize() error {
	bytes := 0
	for _, a := range c.Actions {
		bytes += len(a.Content)
	}
	if len(c.Actions) > maxActions || bytes > maxContents || len(c.Message) > object.MaxCommit/4 {
		return ErrTooLarge
	}
	return nil
}

// editTree returns an editor of the tree of a commit, or of an empty tree.
func editTree(ctx context.Context, r *git.Repository, commit string) (*treeEdit, error) {
	if commit != "" {
		c, err := r.ReadCommit(ctx, commit)
		if err != nil {
			return nil, err
		}
		return &treeEdit{repository: r, pack: object.NewPack(len(commit)), root: &node{mode: modeDirectory, id: c.Tree}}, nil
	}
	const longest = 64
	format, err := r.Objects(ctx, object.EmptyTree(strings.Repeat("0", longest)))
	if err != nil {
		return nil, err
	}
	p := object.NewPack(40)
	if format[0].ID != "" { // every repository has the empty tree, in its own format
		p = object.NewPack(longest)
	}
	return &treeEdit{repository: r, pack: p, root: &node{mode: modeDirectory, children: map[string]*node{}}}, nil
}

// checkLastCommits compares the last commits that changed the files with those that the actions expect.
func checkLastCommits(ctx context.Context, r *git.Repository, c NewCommit) error {
	for i, a := range c.Actions {
		if a.LastCommit == "" {
			continue
		}
		path := a.Path
		if a.Kind == MoveFile {
			path = a.From
		}
		if err := checkPath(path); err != nil {
			return at(i, err)
		}
		last, err := "", error(nil)
		if c.Parent != "" {
			last, err = history.LastCommit(ctx, r, c.Parent, path)
		}
		if err != nil && !errors.Is(err, git.ErrObjectNotFound) {
			return err
		}
		if last != a.LastCommit {
			return &ActionError{Index: i, Path: path, Err: ErrFileChanged}
		}
	}
	return nil
}

// object returns the content of the commit object.
func (c TreeCommit) object() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", c.Author, c.Committer, c.Message)
	return []byte(b.String())
}
