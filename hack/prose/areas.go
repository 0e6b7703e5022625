package main

import (
	"path"
	"strings"
)

// area is a kind of text. Its rules are the same everywhere; areas differ in whether a finding is an error.
type area string

// The areas of the project.
const (
	docs          area = "docs"
	descriptions  area = "descriptions"
	configuration area = "configuration"
	messages      area = "messages"
	comments      area = "comments"
	testNames     area = "test names"
)

// areas lists the areas. "make lint" fails if it finds a phrase in an enforced one; the others are only counted. Enforce an area as soon as it
// is clean.
var areas = []struct {
	name     area
	enforced bool
}{
	{docs, true},          // Markdown
	{descriptions, true},  // comments and validation messages in api: "kubectl explain", the definitions, OpenAPI
	{configuration, true}, // comments, messages and descriptions in config and charts
	{messages, true},      // strings in Go code that is not a test
	{comments, false},     // Go code, scripts and makefiles
	{testNames, false},    // names of Go tests, and the sentences of Ginkgo specs
}

func enforced(a area) bool {
	for _, known := range areas {
		if known.name == a {
			return known.enforced
		}
	}
	return false
}

// readFunc reads the passages of a file.
type readFunc func(file string, text []byte) ([]*passage, error)

// skipped are files whose text is not ours to change, is generated, or quotes the phrases that the rules forbid.
func skipped(file string) bool {
	return strings.Contains(file, "testdata/") ||
		strings.HasPrefix(file, "charts/forgeplane/files/") ||
		strings.HasPrefix(file, "config/crd/") ||
		strings.HasPrefix(path.Base(file), "zz_generated") ||
		strings.HasPrefix(file, "hack/prose/rules")
}

// reader returns the function that reads a file, or nil for a file without prose.
func reader(file string) readFunc {
	if skipped(file) {
		return nil
	}
	inConfiguration := strings.HasPrefix(file, "config/") || strings.HasPrefix(file, "charts/")
	switch path.Ext(file) {
	case ".md":
		return readMarkdown
	case ".go":
		return readGo
	case ".json":
		if inConfiguration {
			return readSchema
		}
	case ".yaml", ".yml", ".tpl", ".tmpl":
		if inConfiguration {
			return readYAML(configuration)
		}
		return readYAML(comments)
	case ".sh":
		return readYAML(comments)
	}
	if path.Base(file) == "Makefile" || file == ".ci/run" {
		return readYAML(comments)
	}
	return nil
}
