package conventions_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// goFiles returns the paths of the Go files below a directory of the project, tests included.
func goFiles(t *testing.T, directory string) (paths []string) {
	t.Helper()
	top := filepath.Join("../..", directory)
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != top && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go"):
			paths = append(paths, path)
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return paths
}
