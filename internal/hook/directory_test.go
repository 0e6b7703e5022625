package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPrepareDir_refusesParentWritableByOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		mode os.FileMode
		want string
	}{
		"of this user":         {0o755, ""},
		"of everybody":         {0o777, "other users could replace"},
		"of a group":           {0o775, "other users could replace"},
		"of everybody, sticky": {0o777 | os.ModeSticky, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "run")
			if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(dir), tt.mode); err != nil {
				t.Fatal(err)
			}
			err := PrepareDir(dir)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--runtime-dir")):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPrepareDir_refusesParentOfAnotherUser(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "run")
	if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(dir), 65532, 65532); err != nil {
		t.Skip("only root can give a directory to somebody else")
	}
	if err := PrepareDir(dir); err == nil || !strings.Contains(err.Error(), "belongs to another user, who could replace it") {
		t.Errorf("got %v", err)
	}
}

func TestPrepareDir_makesDirectoryPrivate(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"missing":             {func(string) error { return nil }, ""},
		"there":               {func(dir string) error { return os.Mkdir(dir, 0o700) }, ""},
		"readable for others": {func(dir string) error { return os.Mkdir(dir, 0o755) }, ""},
		"writable for a group": {func(dir string) error {
			return os.Mkdir(dir, 0o700)
		}, "other users can write to"},
		"a link": {func(dir string) error {
			if err := os.Mkdir(dir+"-elsewhere", 0o700); err != nil {
				return err
			}
			return os.Symlink(dir+"-elsewhere", dir)
		}, "is a link or a file"},
		"a file": {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is a link or a file"},
		"of another user": {func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chown(dir, 65532, 65532)
		}, "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "run")
			if err := os.Mkdir(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tt.prepare(dir); os.IsPermission(err) {
				t.Skip("only root can give a directory to somebody else")
			} else if err != nil {
				t.Fatal(err)
			}
			if name == "writable for a group" {
				if err := os.Chmod(dir, 0o770); err != nil { // regardless of the umask
					t.Fatal(err)
				}
			}
			err := PrepareDir(dir)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--runtime-dir") {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}
