package forge

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// NewDirectory creates a directory for a RepositoryStorage. The check that nothing is written includes its content.
func (f *Forge) NewDirectory(name string) string {
	GinkgoHelper()
	directory := filepath.Join(f.storages, name)
	Expect(os.Mkdir(directory, 0o755)).To(Succeed())
	return directory
}

// tree returns one line for each file and directory of the repositories, which changes with every write. It omits the directories of the storages
// themselves, because Forgeplane writes to them to test whether it can.
func (f *Forge) tree() (lines []string) {
	GinkgoHelper()
	err := filepath.WalkDir(f.storages, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == f.storages || filepath.Dir(path) == f.storages {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(f.storages, path)
		lines = append(lines, fmt.Sprintf("%s %s %d %s", relative, info.Mode(), info.Size(), info.ModTime().Format("15:04:05.000000000")))
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return lines
}
