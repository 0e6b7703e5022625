package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/forgeplane/forgeplane/internal/git"
)

// archiveFiles form a directory that `git archive` accepts as a repository, while the objects are elsewhere. Its attributes take precedence
// over those of a commit, without writing anything to the real repository. They turn off placeholders (export-subst), because a short file
// could contain a long message many times.
var archiveFiles = map[string]string{
	"HEAD":            "ref: refs/heads/main\n",
	"info/attributes": "* -export-subst\n",
}

// archiveConfigs are the configurations of such directories by object format.
var archiveConfigs = map[string]string{
	"sha1":   "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	"sha256": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n",
}

// archiveDir creates the directory for an archive of a commit with this id. Each archive gets its own directory, which is removed
// afterwards: git executes commands of its configuration, so no other user must have time to replace it.
func archiveDir(e *git.Engine, commit string) (dir string, remove func(), err error) {
	format := "sha1"
	if len(commit) != 40 {
		format = "sha256"
	}
	dir, remove, err = e.ScratchDir()
	if err == nil {
		if err = fillArchiveDir(dir, archiveConfigs[format]); err != nil {
			remove()
			err = fmt.Errorf("%w: %w", git.ErrScratch, err)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("creating a directory for an archive: %w", err)
	}
	return dir, remove, nil
}

func fillArchiveDir(dir, config string) error {
	for _, name := range []string{"info", "objects", "refs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	for name, text := range archiveFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

// ceiling passes on at most left bytes.
type ceiling struct {
	to       io.Writer
	left     int64
	exceeded bool
}

var errCeiling = errors.New("it exceeds the limit")

// Write implements io.Writer.
func (c *ceiling) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.exceeded = true
		return 0, errCeiling
	}
	return c.to.Write(p)
}
