package main

import (
	"path"
	"strings"
)

// area is a kind of text. Its rules are the same everywhere.
type area string

// The areas of the project.
const (
	docs          area = "docs"          // Markdown
	descriptions  area = "descriptions"  // comments and validation messages in api: "kubectl explain", the definitions, OpenAPI
	configuration area = "configuration" // comments, messages and descriptions in config and charts
	messages      area = "messages"      // strings in Go code that is not a test
	comments      area = "comments"      // Go code, scripts and makefiles
	testNames     area = "test names"    // names of Go tests, and the sentences of Ginkgo specs
)

var areas = []area{docs, descriptions, configuration, messages, comments, testNames}

// readFunc reads the passages of a file.
type readFunc func(file string, text []byte) ([]*passage, error)

// skipped reports whether the text of a file is not ours to change, is generated, or quotes the phrases that the rules forbid.
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
