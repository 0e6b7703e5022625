package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The page of the metrics", func() {
	It("lists exactly the metrics that the programs register", func() {
		registered := map[string]bool{}
		name := regexp.MustCompile(`"(forgeplane_[a-z_]+)"`)
		for _, area := range []string{"apiserver", "cmd", "controllers", "internal"} {
			Expect(filepath.WalkDir(filepath.Join(root, area), func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				for _, m := range name.FindAllStringSubmatch(string(text), -1) {
					registered[m[1]] = true
				}
				return err
			})).To(Succeed())
		}
		Expect(len(registered)).To(BeNumerically(">", 10))
		var want []any
		for metric := range registered {
			want = append(want, metric)
		}
		Expect(firstCells(read("docs/operations.md").section("Metrics"))).To(ConsistOf(want...))
	})
})

// missing are features that readers look for in a software forge, with the part of the paths of its endpoints.
var missing = map[string]string{
	"issues": "issues", "merge requests": "merge_requests", "pipelines": "pipelines", "jobs": "jobs", "milestones": "milestones", "wikis": "wikis",
	"snippets": "snippets", "releases": "releases", "packages": "packages", "webhooks": "hooks", "emoji reactions": "award_emoji", "SSH keys": "keys",
}

var _ = Describe("The README", func() {
	It("says what is missing, and nothing that is served", func() {
		_, rest, found := strings.Cut(read("README.md").text, "\nThis version has no ")
		Expect(found).To(BeTrue())
		paragraph, _, _ := strings.Cut(rest, "\n\n")
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		table := read("apiserver/testdata/authorization.txt").text
		Expect(table).To(MatchRegexp(`(?m)^GET \S+/labels$`))
		for what, segment := range missing {
			served, err := regexp.MatchString(`(?m)^[A-Z]+ (\S*/)?`+segment+`(/\S*)?$`, table)
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Contains(paragraph, what)).To(Equal(!served), "%s; the endpoint table has /%s: %t", what, segment, served)
		}
	})
})
