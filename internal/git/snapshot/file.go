package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/forgeplane/forgeplane/internal/git"
	"github.com/forgeplane/forgeplane/internal/git/object"
)

// ReadFile returns the content of the file at path in a commit or tree. The error is fs.ErrNotExist if there is no file, for example a
// directory, and git.ErrFileTooLarge if the file has more than limit bytes. A symbolic link is a file that contains its target. A file whose
// objects are missing from the repository exists: the error is another one then.
func ReadFile(ctx context.Context, r *git.Repository, id, path string, limit int) ([]byte, error) {
	if err := object.CheckIDs(id); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("path %q: %w", path, fs.ErrInvalid)
	}
	o, content, err := r.Read(ctx, id+":"+path, int64(limit))
	if errors.Is(err, git.ErrObjectNotFound) {
		err = absent(ctx, r, id, path)
	} else if o.ID != "" && o.Type != "blob" {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// absent returns fs.ErrNotExist if a commit or tree has no file at a path that git has not found. Git does not find a file either if its object, or
// that of a directory above, is missing.
func absent(ctx context.Context, r *git.Repository, id, path string) error {
	damaged := func(id string) error { return fmt.Errorf("the repository is damaged: %s cannot be read", id) }
	names := strings.Split(path, "/")
	for i, name := range names {
		var found object.TreeEntry
		err := readDirectory(ctx, r, id, "", func(content []byte, idBytes int) (err error) {
			found, err = object.FindEntry(content, name, idBytes)
			return err
		})
		switch {
		case errors.Is(err, git.ErrObjectNotFound):
			return damaged(id)
		case err != nil:
			return err
		case found.ID == "" || found.Type == "commit" || found.Type != "tree" && i < len(names)-1:
			return fs.ErrNotExist
		}
		id = found.ID
	}
	return damaged(id)
}
