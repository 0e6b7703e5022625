package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// page is a document of the project.
type page struct {
	// path is relative to the root of the repository.
	path, text string
}

func read(path string) page {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, path))
	Expect(err).NotTo(HaveOccurred())
	return page{path, string(text)}
}

// pages returns the pages at the root and in docs.
func pages() (all []page) {
	GinkgoHelper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			path, err := filepath.Rel(root, file)
			Expect(err).NotTo(HaveOccurred())
			all = append(all, read(path))
		}
	}
	return all
}

var fence = regexp.MustCompile("(?s)```([^\n]*)\n(.*?)\n```")

// examples returns the blocks of YAML in a page.
func (p page) examples() (all []string) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] == "yaml" {
			all = append(all, m[2])
		}
	}
	return all
}

// section returns the text below a heading of the second level, up to the next one.
func (p page) section(heading string) string {
	_, rest, _ := strings.Cut(p.text, "\n## "+heading+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// sections returns the headings of the second level.
func (p page) sections() (headings []string) {
	for line := range strings.Lines(p.text) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			headings = append(headings, strings.TrimSpace(heading))
		}
	}
	return headings
}

// firstCells returns the text in backticks in the first column of the tables of a text.
func firstCells(text string) (all []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

func kinds() (all []*apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "forgeplane.dev_*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(text, crd)).To(Succeed())
		all = append(all, crd)
	}
	return all
}

var _ = Describe("The page of a kind", func() {
	It("exists, in the same form as the others", func() {
		for _, crd := range kinds() {
			p := read("docs/" + crd.Spec.Names.Singular + ".md")
			Expect(p.text).To(HavePrefix("# " + crd.Spec.Names.Kind + "\n"))
			Expect(p.text).To(ContainSubstring("short name `"+crd.Spec.Names.ShortNames[0]+"`"), p.path)
			Expect(p.examples()).NotTo(BeEmpty(), "%s has no example", p.path)
			Expect(p.sections()).To(Equal([]string{"Fields", "Behaviour", "Conditions", "REST", "kubectl"}), "the sections of %s", p.path)
			Expect(read("README.md").text).To(ContainSubstring("(" + p.path + ")"))
		}
	})

	It("names every field, and only fields that exist", func() {
		common := []string{"conditions", "observedGeneration", "claims"}
		for _, name := range common[1:] {
			Expect(read("docs/concepts.md").text).To(ContainSubstring("`status." + name + "`"))
		}
		for _, crd := range kinds() {
			p := read("docs/" + crd.Spec.Names.Singular + ".md")
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			described := map[string]bool{}
			for _, path := range firstCells(p.section("Fields")) {
				part, rest, ok := strings.Cut(path, ".")
				if !ok || (part != "spec" && part != "status") {
					continue // a table of values
				}
				top, _, _ := strings.Cut(rest, ".")
				described[part+"."+top] = true
				at := schema
				for name := range strings.SplitSeq(path, ".") {
					below, ok := at.Properties[name]
					Expect(ok).To(BeTrue(), "%s describes %s, which is not in the schema", p.path, path)
					at = &below
				}
			}
			for _, part := range []string{"spec", "status"} {
				for name := range schema.Properties[part].Properties {
					if slices.Contains(common, name) {
						continue // a field of every kind is described in one place
					}
					Expect(described).To(HaveKey(part+"."+name), p.path)
				}
			}
		}
	})

	It("names every reason that the controller gives, and only reasons that exist", func() {
		source := read("api/v1alpha1/conditions.go").text
		reasons := map[string]string{} // by the name of the constant
		for _, m := range regexp.MustCompile(`(?m)^\t(Reason\w+) = "(\w+)"$`).FindAllStringSubmatch(source, -1) {
			reasons[m[1]] = m[2]
		}
		Expect(reasons).NotTo(BeEmpty())
		known := map[string]bool{}
		for _, reason := range reasons {
			known[reason] = true
		}
		for _, crd := range kinds() {
			kind := crd.Spec.Names.Singular
			p := read("docs/" + kind + ".md")
			described := firstCells(p.section("Conditions"))
			for _, reason := range described {
				Expect(known).To(HaveKey(reason), "%s describes a reason that nothing gives", p.path)
			}
			for _, reason := range given(kind, reasons) {
				Expect(described).To(ContainElement(reason), p.path)
			}
		}
	})
})

var _ = Describe("A page", func() {
	It("names only packages and files that exist in the sources", func() {
		source := regexp.MustCompile("`((?:api/v1alpha1|apiserver|charts|cmd|config|controllers|docs|hack|internal|test)(?:/[a-z0-9_./-]+)?)`")
		for _, p := range pages() {
			for _, m := range source.FindAllStringSubmatch(p.text, -1) {
				Expect(filepath.Join(root, m[1])).To(Or(BeARegularFile(), BeADirectory()), p.path)
			}
		}
	})

	It("names only tests that exist", func() {
		exist := map[string]bool{}
		Expect(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				exist[m[1]] = true
			}
			return err
		})).To(Succeed())
		for _, p := range pages() {
			for _, m := range regexp.MustCompile("`(Test[A-Z]\\w*_\\w+)`").FindAllStringSubmatch(p.text, -1) {
				Expect(exist).To(HaveKey(m[1]), p.path)
			}
		}
	})

	It("has only links that lead to an existing place", func() {
		link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
		for _, p := range pages() {
			for _, m := range link.FindAllStringSubmatch(p.text, -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, "://") {
					continue
				}
				to := p.path
				if target != "" {
					to = filepath.Join(filepath.Dir(p.path), target)
					Expect(filepath.Join(root, to)).To(Or(BeARegularFile(), BeADirectory()), "a link of %s", p.path)
				}
				if anchor != "" {
					Expect(anchors(read(to))).To(ContainElement(anchor), "a link of %s to %s", p.path, to)
				}
			}
		}
	})
})

// given returns the reasons that the sources of a controller name.
func given(kind string, reasons map[string]string) (all []string) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "controllers", kind, "*.go"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	all = []string{"Ready", "Failed"}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for _, m := range regexp.MustCompile(`v1alpha1\.(Reason\w+)`).FindAllStringSubmatch(string(text), -1) {
			Expect(reasons).To(HaveKey(m[1]))
			all = append(all, reasons[m[1]])
		}
		for call, reason := range map[string]string{
			"frame.Unresolved(": "ReferenceNotFound", "frame.InScope(": "ReferenceNotFound", "frame.Reachable(": "ReferenceNotReady",
			".Take(": "AlreadyExists", ".TakePath(": "ReferenceNotReady", "WithIDs[": "AlreadyExists",
		} {
			if strings.Contains(string(text), call) {
				all = append(all, reason)
			}
		}
	}
	return all
}

// anchors returns the anchors of the headings on the rendered page.
func anchors(p page) (all []string) {
	for line := range strings.Lines(p.text) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			text := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			all = append(all, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return all
}
