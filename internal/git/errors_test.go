package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/forgeplane/forgeplane/internal/git"
)

func TestNoSpace(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("recording: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}):                     true,
		fmt.Errorf("recording: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}):                     true,
		fmt.Errorf("updating: %w", &git.Error{Stderr: "fatal: sha1 file 'x' write error: No space left on device"}): true,
		fmt.Errorf("updating: %w", &git.Error{Stderr: "fatal: not a valid object name"}):                            false,
		errors.New("No space left on device"):                                                                       false,
	} {
		if got := git.NoSpace(err); got != want {
			t.Errorf("NoSpace(%v) = %t", err, got)
		}
	}
}
