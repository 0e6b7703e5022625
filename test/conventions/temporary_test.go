package conventions_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/forgeplane/forgeplane/internal/frame"
)

var makesTemporary = regexp.MustCompile(`os\.(?:Create|Mkdir)Temp\([^,]+, ("[^"]*"|\w+)\)`)

// An error with the name of a temporary file would change a condition at each attempt.
func TestTemporaryFiles_haveNamesThatConditionsHide(t *testing.T) {
	g := NewWithT(t)
	found := 0
	for _, directory := range []string{"controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", directory), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && strings.HasSuffix(path, "test"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, call := range makesTemporary.FindAllStringSubmatch(string(text), -1) {
				found++
				const random = "173606543"
				prefix, suffix, _ := strings.Cut(pattern(string(text), call[1]), "*")
				name := filepath.Join("/srv", prefix+random+suffix, "git")
				g.Expect(frame.Sanitise(name)).NotTo(ContainSubstring(random), "%s: give the file a prefix that frame.Sanitise knows, or add it there", path)
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(found).To(BeNumerically(">=", 7), "the calls that were found")
}

// pattern returns the value of a string, or of a constant of the same file.
func pattern(text, value string) string {
	if constant := regexp.MustCompile(`\b` + value + `\s*= ("[^"]*")`).FindStringSubmatch(text); constant != nil {
		value = constant[1]
	}
	unquoted, err := strconv.Unquote(value)
	if err != nil {
		return ""
	}
	return unquoted
}
