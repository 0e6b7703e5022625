package git

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// archiveFiles make a directory that `git archive` takes for that of a repository, while the objects lie elsewhere: its attributes
// outrank those of a commit, and nothing is written into the repository for that. Placeholders of export-subst stay as they are: a
// short file could have a long message in it many times.
var archiveFiles = map[string]string{
	"HEAD":            "ref: refs/heads/main\n",
	"info/attributes": "* -export-subst\n",
}

// archiveConfigs are the configurations of such directories by their object formats.
var archiveConfigs = map[string]string{
	"sha1":   "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
	"sha256": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n",
}

// archiveDir returns the directory for a commit with this id. It is made at the first use, and removed with the engine.
func (e *Engine) archiveDir(commit string) (string, error) {
	format := "sha1"
	if len(commit) != 40 {
		format = "sha256"
	}
	e.archiveMu.Lock()
	defer e.archiveMu.Unlock()
	if dir := e.archiveDirs[format]; dir != "" {
		if isDir, err := directory(dir); isDir && err == nil { // somebody may have emptied the directory for temporary files
			return dir, nil
		}
	}
	dir, err := os.MkdirTemp("", "forgeplane-archive-")
	if err == nil {
		e.archiveDirs[format] = dir
		err = fillArchiveDir(dir, archiveConfigs[format])
	}
	if err != nil {
		return "", fmt.Errorf("making a directory for archives: %w", err)
	}
	return dir, nil
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

// removeArchiveDirs removes what archiveDir has made.
func (e *Engine) removeArchiveDirs() {
	e.archiveMu.Lock()
	defer e.archiveMu.Unlock()
	for format, dir := range e.archiveDirs {
		_ = os.RemoveAll(dir) // what stays is small, and in a directory for temporary files
		delete(e.archiveDirs, format)
	}
}

// ceiling passes on at most left bytes.
type ceiling struct {
	to       io.Writer
	left     int64
	exceeded bool
}

var errCeiling = errors.New("there is more than allowed")

// Write implements io.Writer.
func (c *ceiling) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		c.exceeded = true
		return 0, errCeiling
	}
	return c.to.Write(p)
}
