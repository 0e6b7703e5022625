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
// directory, and git.ErrFileTooLarge if the file has more than limit bytes. A symbolic link is a file that contains its target.
func ReadFile(ctx context.Context, r *git.Repository, id, path string, limit int) ([]byte, error) {
	if err := object.CheckIDs(id); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("path %q: %w", path, fs.ErrInvalid)
	}
	o, content, err := r.Read(ctx, id+":"+path, int64(limit))
	if errors.Is(err, git.ErrObjectNotFound) || o.ID != "" && o.Type != "blob" {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return content, err
}
