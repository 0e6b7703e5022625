package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Quarantine is the directory of a push's objects until the push is accepted. A nil Quarantine is for a push without objects.
type Quarantine struct{ name string }

var quarantineName = regexp.MustCompile(`^tmp_objdir-incoming-[A-Za-z0-9]+$`)

// Quarantine returns the quarantine at a path that a hook has reported, or nil if that is empty. Only the last part of the
// path is used, so it cannot lead out of the repository.
func (r *Repository) Quarantine(path string) (*Quarantine, error) {
	if path == "" {
		return nil, nil
	}
	name := filepath.Base(path)
	if !quarantineName.MatchString(name) {
		return nil, fmt.Errorf("%q does not name a quarantine directory", name)
	}
	dir := filepath.Join(r.dir, "objects", name)
	if info, err := os.Lstat(dir); err != nil {
		return nil, fmt.Errorf("quarantine directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("quarantine %s is not a directory", dir)
	}
	return &Quarantine{name: name}, nil
}

// quarantined returns a command that also sees the objects of a push.
func (r *Repository) quarantined(q *Quarantine, args ...string) command {
	c := r.command(args...)
	c.within = true // the push waits for the command
	if q != nil {
		// The path is relative, because some characters have a special meaning in a list of alternates.
		c.env = append(c.env, "GIT_OBJECT_DIRECTORY=objects/"+q.name, "GIT_ALTERNATE_OBJECT_DIRECTORIES=objects")
	}
	return c
}

// IsObjectID reports whether s has the form of an object id, SHA-1 or SHA-256.
func IsObjectID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) { // long lists contain too many ids for a regular expression
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsZeroID reports whether s is the all-zero id, which stands for a ref that does not exist.
func IsZeroID(s string) bool { return IsObjectID(s) && strings.Trim(s, "0") == "" }

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !IsObjectID(id) {
			return fmt.Errorf("%q is not an object id", id)
		}
	}
	return nil
}

// IsAncestor reports whether the commit ancestor is reachable from the commit of.
func (r *Repository) IsAncestor(ctx context.Context, ancestor, of string, q *Quarantine) (bool, error) {
	if err := checkIDs(ancestor, of); err != nil {
		return false, err
	}
	_, err := r.output(ctx, 1024, r.quarantined(q, "merge-base", "--is-ancestor", ancestor, of))
	if failed := (*Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return false, nil
	}
	return err == nil, err
}

// MergeBase returns the best common ancestor of two commits, or "" if they have none.
func (r *Repository) MergeBase(ctx context.Context, a, b string, q *Quarantine) (string, error) {
	if err := checkIDs(a, b); err != nil {
		return "", err
	}
	out, err := r.output(ctx, 1024, r.quarantined(q, "merge-base", a, b))
	if failed := (*Error)(nil); errors.As(err, &failed) && failed.ExitCode == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

// ChangedPaths returns the paths that differ between two commits or trees: added, changed and removed paths; a renamed file counts with
// both names. An empty from stands for the empty tree. The error is ErrOutputTooLarge if the paths, plus one byte for each, exceed limit
// bytes.
func (r *Repository) ChangedPaths(ctx context.Context, from, to string, limit int, q *Quarantine) ([]string, error) {
	c := r.quarantined(q, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-commit-id",
		"--ignore-submodules=none", from, to)
	if from == "" {
		c = r.quarantined(q, "ls-tree", "-r", "-z", "--name-only", to)
	} else if err := checkIDs(from); err != nil {
		return nil, err
	}
	if err := checkIDs(to); err != nil {
		return nil, err
	}
	out, err := r.output(ctx, limit, c)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// ErrFileTooLarge is returned for a file that exceeds the limit of the caller.
var ErrFileTooLarge = errors.New("the file is too large")

// ReadFile returns the content of the file at path in a commit or tree. The error is fs.ErrNotExist if there is no file, for example a
// directory, and ErrFileTooLarge if the file has more than limit bytes. A symbolic link is a file that contains its target.
func (r *Repository) ReadFile(ctx context.Context, id, path string, limit int) ([]byte, error) {
	if err := checkIDs(id); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("path %q: %w", path, fs.ErrInvalid)
	}
	o, content, err := r.Read(ctx, id+":"+path, int64(limit))
	if errors.Is(err, ErrObjectNotFound) || o.ID != "" && o.Type != "blob" {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return content, err
}
