package conventions_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var ranPackages = regexp.MustCompile(`(?m)^\s*[a-z0-9]+\) (?:make .* && )?tests (.*) ;;$`)

// A test that is left to "make soak" and to no part of it would never run.
func TestLongTests_areInAPartOfSoak(t *testing.T) {
	g := NewWithT(t)
	script, err := os.ReadFile("../../hack/soak.sh")
	g.Expect(err).NotTo(HaveOccurred())
	parts := ranPackages.FindAllStringSubmatch(string(script), -1)
	g.Expect(len(parts)).To(BeNumerically(">", 4), "the parts that were found")
	var ran []string
	for _, part := range parts {
		ran = append(ran, strings.Fields(part[1])...)
	}

	uses := exec.CommandContext(t.Context(), "git", "grep", "--untracked", "--name-only", "--extended-regexp", `test/soak"|suite\.Soak`, "--", "*_test.go", "test/conformance", ":!test/conventions")
	uses.Dir = "../.."
	files, err := uses.Output()
	g.Expect(err).NotTo(HaveOccurred())
	for file := range strings.FieldsSeq(string(files)) {
		directory := "./" + file[:strings.LastIndex(file, "/")]
		g.Expect(ran).To(ContainElement(Satisfy(func(pattern string) bool { return covers(pattern, directory) })),
			"%s: add the package to a part of hack/soak.sh", file)
	}
}

// covers reports whether a pattern such as "./internal/git/..." or "./test/e2e" contains the package in a directory.
func covers(pattern, directory string) bool {
	below, deep := strings.CutSuffix(pattern, "/...")
	return directory == below || deep && strings.HasPrefix(directory, below+"/")
}
