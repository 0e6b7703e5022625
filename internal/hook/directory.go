package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrepareDir makes the directory of the hooks and their socket, for this user alone. Whoever else could write into it could have git
// run what they like, or answer for the server: so it must be a directory, not a link to one, of this user, and nobody else may
// write into it, or into the directory above unless only owners remove what is there (the sticky bit): they could replace it. One that
// others can only read is closed to them.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("making the runtime directory: %w", err)
	}
	if err := checkParent(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the runtime directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("looking at the runtime directory: %w", err)
	}
	const remedy = "; remove it, or name another directory in --runtime-dir, which is then made"
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("the runtime directory %s is a link or a file, and must be a directory"+remedy, dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("the runtime directory %s belongs to another user, and must belong to the one that Forgeplane runs as"+remedy, dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write into the runtime directory %s (mode %04o): it must have mode 0700"+remedy, dir, info.Mode().Perm())
	case info.Mode().Perm() != 0o700:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("closing the runtime directory to others: %w", err)
		}
	}
	return nil
}

// checkParent says who else than this user and root could put another directory into the place of dir.
func checkParent(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	if err != nil {
		return fmt.Errorf("looking at the directory above the runtime directory: %w", err)
	}
	const remedy = ": name another directory in --runtime-dir, such as one below %s, which is then made"
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("the directory above the runtime directory %s belongs to another user, who could replace it"+remedy, dir, filepath.Join(dir, "run"))
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("others could replace the runtime directory %s: they can write into the directory above (mode %04o without the sticky bit)"+remedy,
			dir, info.Mode().Perm(), filepath.Join(dir, "run"))
	}
	return nil
}
