package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Action is what a new commit does to a file.
type Action struct {
	Kind ActionKind
	// Path is from the root of the repository, without slashes at its ends.
	Path string
	// From is where a file is that is moved to Path.
	From string
	// Content is that of a file that is created or updated. For one that is moved, nil means that it stays the same.
	Content []byte
	// Executable is whether the file can be executed; nil leaves that as it is, and a new file cannot be.
	Executable *bool
	// LastCommit, unless empty, is the commit that is expected to be the last one to have changed the file.
	LastCommit string
}

// ActionKind is one of the constants below.
type ActionKind string

// What can be done to a file. Symbolic links are files that contain their target; submodules can be moved and deleted.
const (
	CreateFile ActionKind = "create"
	UpdateFile ActionKind = "update"
	DeleteFile ActionKind = "delete"
	MoveFile   ActionKind = "move"
	ChmodFile  ActionKind = "chmod"
)

// ActionError says which action is in the way of a commit, and why.
type ActionError struct {
	// Path is what the error is about, and Err one of those below.
	Path string
	Err  error
}

func (e *ActionError) Error() string { return fmt.Sprintf("%.300q: %v", e.Path, e.Err) }

func (e *ActionError) Unwrap() error { return e.Err }

// Errors about actions.
var (
	// ErrFileExists: what is created, or moved there, is there already.
	ErrFileExists = errors.New("a file with this name already exists")
	// ErrFileNotFound: what is changed is not there, or is no file.
	ErrFileNotFound = errors.New("a file with this name doesn't exist")
	// ErrDirectoryExists: a directory is where a file is to be.
	ErrDirectoryExists = errors.New("a directory with this name already exists")
	// ErrNotDirectory: a file is where a directory is to be.
	ErrNotDirectory = errors.New("a file is in the place of a directory")
	// ErrInvalidPath: no file of Git can have the path.
	ErrInvalidPath = errors.New("the path is invalid")
	// ErrFileChanged: another commit than the expected one was the last to change the file.
	ErrFileChanged = errors.New("the file has changed")
)

// ErrCommitTooLarge is returned for a commit that is beyond the limits of WriteCommit.
var ErrCommitTooLarge = errors.New("there is too much in the commit")

// apply does what the action says.
func (t *treeEdit) apply(ctx context.Context, a Action) error {
	if err := checkPath(a.Path); err != nil {
		return err
	}
	switch a.Kind {
	case CreateFile:
		mode := "100644"
		if a.Executable != nil && *a.Executable {
			mode = "100755"
		}
		return t.add(ctx, a.Path, &node{mode: mode, id: t.pack.add("blob", a.Content)})
	case UpdateFile:
		return t.update(ctx, a)
	case DeleteFile:
		_, err := t.remove(ctx, a.Path)
		return err
	case MoveFile:
		return t.move(ctx, a)
	case ChmodFile:
		file, err := t.file(ctx, a.Path)
		if err != nil {
			return err
		}
		return t.put(ctx, a.Path, file.with(a.Executable))
	default:
		return fmt.Errorf("there is no action %.100q", a.Kind)
	}
}

func (t *treeEdit) update(ctx context.Context, a Action) error {
	file, err := t.file(ctx, a.Path)
	if err != nil {
		return err
	}
	changed := file.with(a.Executable)
	changed.id = t.pack.add("blob", a.Content)
	return t.put(ctx, a.Path, changed)
}

func (t *treeEdit) move(ctx context.Context, a Action) error {
	if err := checkPath(a.From); err != nil {
		return err
	}
	file, err := t.remove(ctx, a.From)
	if err != nil {
		return err
	}
	moved := file.with(a.Executable)
	if a.Content != nil {
		if file.mode == modeSubmodule {
			return &ActionError{a.From, ErrFileNotFound}
		}
		moved.id = t.pack.add("blob", a.Content)
	}
	return t.add(ctx, a.Path, moved)
}

// file returns the file at a path.
func (t *treeEdit) file(ctx context.Context, path string) (*node, error) {
	switch found, err := t.find(ctx, path); {
	case err != nil:
		return nil, err
	case found == nil, found.mode == modeDirectory, found.mode == modeSubmodule:
		return nil, &ActionError{path, ErrFileNotFound}
	default:
		return found, nil
	}
}

// add puts a file where there is nothing.
func (t *treeEdit) add(ctx context.Context, path string, n *node) error {
	switch found, err := t.find(ctx, path); {
	case err != nil:
		return err
	case found == nil:
		return t.put(ctx, path, n)
	case found.mode == modeDirectory:
		return &ActionError{path, ErrDirectoryExists}
	default:
		return &ActionError{path, ErrFileExists}
	}
}

// The limits of paths, in bytes. maxName is that of file systems.
const (
	maxFilePath = 4096
	maxName     = 255
)

// checkPath refuses what no work tree can have. What else is dangerous in one, Git refuses with the tree.
func checkPath(path string) error {
	clean, ok := CleanPath(path)
	if !ok || clean == "" || clean == "." || clean != path || len(path) > maxFilePath {
		return &ActionError{path, ErrInvalidPath}
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > maxName || strings.EqualFold(name, ".git") {
			return &ActionError{path, ErrInvalidPath}
		}
	}
	return nil
}
