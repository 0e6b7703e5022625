package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PrepareDir creates the directory of the hooks and their socket, for this user alone. Another user who could write to it could make git
// run anything, or answer in place of the server. So it must be a directory, not a link to one, and belong to this user. No other user may
// write to it, or to the directory above unless only owners can remove its entries (the sticky bit), because they could replace it.
// PrepareDir removes the read permission of others.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("creating the runtime directory: %w", err)
	}
	if err := checkParent(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the runtime directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("looking at the runtime directory: %w", err)
	}
	const remedy = "; remove it, or name another directory in --runtime-dir, which Forgeplane then creates"
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("the runtime directory %s is a link or a file, and must be a directory"+remedy, dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("the runtime directory %s belongs to another user, and must belong to the one that Forgeplane runs as"+remedy, dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users can write to the runtime directory %s (mode %04o): it must have mode 0700"+remedy, dir, info.Mode().Perm())
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
	const remedy = ": name another directory in --runtime-dir, such as one below %s, which Forgeplane then creates"
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("the directory above the runtime directory %s belongs to another user, who could replace it"+remedy, dir, filepath.Join(dir, "run"))
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("other users could replace the runtime directory %s: they can write to the directory above (mode %04o without the sticky bit)"+remedy,
			dir, info.Mode().Perm(), filepath.Join(dir, "run"))
	}
	return nil
}
