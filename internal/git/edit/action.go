package edit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git/object"
)

// Action is a change of one file in a new commit.
type Action struct {
	Kind ActionKind
	// Path is relative to the root of the repository, without slashes at its ends.
	Path string
	// From is the current path of a file that is moved to Path.
	From string
	// Content is the content of a file that is created or updated. For a file that is moved, nil means that the content does not change.
	Content []byte
	// Executable says whether the file is executable. nil leaves it as it is; a new file is not executable then.
	Executable *bool
	// LastCommit, unless empty, is the expected last commit that changed the file.
	LastCommit string
}

// ActionKind is one of the constants below.
type ActionKind string

// The kinds of actions. Symbolic links are files that contain their target; submodules can only be moved and deleted.
const (
	CreateFile ActionKind = "create"
	UpdateFile ActionKind = "update"
	DeleteFile ActionKind = "delete"
	MoveFile   ActionKind = "move"
	ChmodFile  ActionKind = "chmod"
)

// ActionError says which action prevents a commit, and why.
type ActionError struct {
	// Index is the position of the action, from 0.
	Index int
	// Path is the path that the error is about, and Err one of the errors below.
	Path string
	Err  error
}

func (e *ActionError) Error() string { return fmt.Sprintf("%.300q: %v", e.Path, e.Err) }

func (e *ActionError) Unwrap() error { return e.Err }

// Errors about actions.
var (
	// ErrFileExists: a file that is created, or the destination of a move, exists already.
	ErrFileExists = errors.New("a file with this name already exists")
	// ErrFileNotFound: a file that is changed does not exist, or is not a file.
	ErrFileNotFound = errors.New("a file with this name doesn't exist")
	// ErrDirectoryExists: the path of a file is a directory.
	ErrDirectoryExists = errors.New("a directory with this name already exists")
	// ErrNotDirectory: a directory of the path is a file.
	ErrNotDirectory = errors.New("a file is in the place of a directory")
	// ErrInvalidPath: Git does not allow a file with this path.
	ErrInvalidPath = errors.New("the path is invalid")
	// ErrFileChanged: the last commit that changed the file is not the expected one.
	ErrFileChanged = errors.New("the file has changed")
)

// ErrTooLarge is returned for a commit that exceeds the limits of Commit.
var ErrTooLarge = errors.New("the commit is too large")

// apply applies an action to the tree.
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
		return t.add(ctx, a.Path, &node{mode: mode, id: t.pack.Add("blob", a.Content)})
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
	changed.id = t.pack.Add("blob", a.Content)
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
			return &ActionError{Path: a.From, Err: ErrFileNotFound}
		}
		moved.id = t.pack.Add("blob", a.Content)
	}
	return t.add(ctx, a.Path, moved)
}

// file returns the file at a path.
func (t *treeEdit) file(ctx context.Context, path string) (*node, error) {
	switch found, err := t.find(ctx, path); {
	case err != nil:
		return nil, err
	case found == nil, found.mode == modeDirectory, found.mode == modeSubmodule:
		return nil, &ActionError{Path: path, Err: ErrFileNotFound}
	default:
		return found, nil
	}
}

// add adds a file at a path where nothing exists.
func (t *treeEdit) add(ctx context.Context, path string, n *node) error {
	switch found, err := t.find(ctx, path); {
	case err != nil:
		return err
	case found == nil:
		return t.put(ctx, path, n)
	case found.mode == modeDirectory:
		return &ActionError{Path: path, Err: ErrDirectoryExists}
	default:
		return &ActionError{Path: path, Err: ErrFileExists}
	}
}

// The limits of paths, in bytes. maxName is the limit of common file systems.
const (
	maxFilePath = 4096
	maxName     = 255
)

// checkPath rejects paths that no work tree can have. Git rejects other dangerous paths when it checks the tree.
func checkPath(path string) error {
	clean, ok := object.CleanPath(path)
	if !ok || clean == "" || clean == "." || clean != path || len(path) > maxFilePath {
		return &ActionError{Path: path, Err: ErrInvalidPath}
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > maxName || strings.EqualFold(name, ".git") {
			return &ActionError{Path: path, Err: ErrInvalidPath}
		}
	}
	return nil
}
