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

// Quarantine is where the objects of a push lie until it is accepted. A nil Quarantine is that of a push without objects.
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

// quarantined is a command that sees the objects of a push as well.
func (r *Repository) quarantined(q *Quarantine, args ...string) command {
	c := r.command(args...)
	c.within = true // the push waits for it
	if q != nil {
		// Relative, since the list of alternates has a syntax of its own for some characters.
		c.env = append(c.env, "GIT_OBJECT_DIRECTORY=objects/"+q.name, "GIT_ALTERNATE_OBJECT_DIRECTORIES=objects")
	}
	return c
}

// IsObjectID reports whether s has the form of an object id, SHA-1 or SHA-256.
func IsObjectID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) { // a list has very many of them, too many for a regular expression
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsZeroID reports whether s is the id of no object, which stands for a ref that does not exist.
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

// ChangedPaths returns the paths that differ between two commits or trees: those added, changed and removed; a renamed
// file counts with both its names. An empty from stands for the empty tree. The answer is limited to limit bytes, counting
// one more for each path; beyond that it is ErrOutputTooLarge.
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

// ErrFileTooLarge is returned for a file beyond the limit of the caller.
var ErrFileTooLarge = errors.New("the file is too large")

// ReadFile returns the content of the file at path in a commit or tree, at most limit bytes. The error is fs.ErrNotExist
// where there is no file, directories included, and ErrFileTooLarge past the limit. A symbolic link is a file that
// contains its target.
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
