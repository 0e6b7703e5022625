package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// scratchPrefix is the prefix of the names of scratch directories.
const scratchPrefix = "forgeplane-archive-"

// ErrScratch says that the short-lived files of a command could not be written. It wraps the error of the disk, which is not that of a repository.
var ErrScratch = errors.New("writing temporary files")

// ScratchDir creates a directory for the short-lived files of a command, which remove removes. Errors of writing to it must wrap ErrScratch, as
// that of ScratchDir does.
func (e *Engine) ScratchDir() (dir string, remove func(), err error) {
	parent := ""
	if e.scratch != nil {
		if parent, err = e.scratch(); err != nil {
			return "", nil, err
		}
	}
	if dir, err = os.MkdirTemp(parent, scratchPrefix); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrScratch, err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // leftovers are removed at the next start
}

// sweep removes the scratch directories of killed processes.
func (e *Engine) sweep() error {
	if e.scratch == nil {
		return nil
	}
	parent, err := e.scratch()
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("removing leftover archives: %w", err)
	}
	return nil
}
